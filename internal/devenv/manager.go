// SPDX-License-Identifier: Apache-2.0

package devenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"rukpak.io/rukpak/internal/testenv/process"
)

const (
	managerNamespace = "rukpak-system"
	managerAccount   = "rukpak-manager"
)

// StartManager starts the manager with the token of its own service account
// and waits until it is ready.
func (e *Env) StartManager(ctx context.Context) error {
	kubeconfig, err := e.managerKubeconfig(ctx)
	if err != nil {
		return err
	}
	probes, err := freeAddress()
	if err != nil {
		return err
	}
	args := append([]string{
		"--kubeconfig=" + kubeconfig,
		"--health-probe-bind-address=" + probes,
		"--metrics-bind-address=0",
		"--leader-elect=false",
		"--store=" + e.ContentDir(),
		"--content-api-bind-address=" + e.contentPort.Address(),
	}, e.options.ManagerArgs...)
	e.manager, err = process.Start(process.Spec{
		Name: "manager", Path: filepath.Join(e.Dir, "manager"), Args: args, Dir: e.Dir,
	})
	if err != nil {
		return err
	}
	if err := e.awaitManager(ctx, "http://"+probes+"/readyz"); err != nil {
		return err
	}
	return e.awaitContentAPI(ctx)
}

// ContentDir is where the manager keeps content.
func (e *Env) ContentDir() string { return filepath.Join(e.Dir, "content") }

// ManagerLog is where the manager writes its log.
func (e *Env) ManagerLog() string { return filepath.Join(e.Dir, "manager.log") }

// ManagerPID is the process id of the manager.
func (e *Env) ManagerPID() int { return e.manager.PID() }

// StopManager ends the manager: by SIGTERM, or at once by SIGKILL with grace 0.
func (e *Env) StopManager(grace time.Duration) {
	if e.manager != nil {
		e.manager.Stop(grace)
		e.manager = nil
	}
}

func (e *Env) managerKubeconfig(ctx context.Context) (string, error) {
	token, err := e.Cluster.Kubectl(ctx, "create", "token", managerAccount, "-n", managerNamespace, "--duration=24h")
	if err != nil {
		return "", fmt.Errorf("token of the manager: %w", err)
	}
	admin := e.Cluster.Config()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "manager"}
	config.CurrentContext = "local"
	path := filepath.Join(e.Dir, "manager.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

func (e *Env) awaitManager(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if reply, err := http.Get(url); err == nil { //nolint:gosec,noctx // a loopback address of our own; the loop has a deadline
			_ = reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-e.manager.Done():
			return e.manager.Err()
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("the manager did not become ready; it said last:\n%s", e.manager.Tail(20)))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// WriteKubeconfig writes the admin's kubeconfig to path.
func (e *Env) WriteKubeconfig(path string) error {
	content, err := os.ReadFile(e.Cluster.Kubeconfig())
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// LoseContent removes the content store of a manager that is stopped.
func (e *Env) LoseContent() error { return os.RemoveAll(e.ContentDir()) }
