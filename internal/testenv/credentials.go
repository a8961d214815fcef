// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"rukpak.io/rukpak/internal/testenv/pki"
)

// Names of the kubeconfig files of an environment, and who they make their users.
const (
	adminConfig      = "kubeconfig"
	controllerConfig = "controller-manager.kubeconfig"
	schedulerConfig  = "scheduler.kubeconfig"
	kwokConfig       = "kwok.kubeconfig"
)

// credentials writes every key, certificate and kubeconfig of the environment into its folder.
func (e *Env) credentials() error {
	ca, err := pki.New("rukpak-testenv")
	if err != nil {
		return err
	}
	front, err := pki.New("rukpak-testenv-front-proxy")
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": ca.PEM, "front-proxy-ca.crt": front.PEM}
	add := func(name string, made pki.Pair, err error) error {
		files[name+".crt"], files[name+".key"] = made.Certificate, made.Key
		return err
	}
	serving, err := ca.Serving("kube-apiserver")
	if err := add("apiserver", serving, err); err != nil {
		return err
	}
	proxy, err := front.Client(frontProxyUser)
	if err := add("front-proxy", proxy, err); err != nil {
		return err
	}
	accounts, err := ca.Client("service-accounts") // only its key is used, to sign tokens
	if err := add("service-accounts", accounts, err); err != nil {
		return err
	}
	if err := writeFiles(e.path("pki"), files); err != nil {
		return err
	}
	return e.kubeconfigs(ca)
}

func (e *Env) kubeconfigs(ca *pki.Authority) error {
	users := []struct {
		file, user string
		groups     []string
	}{
		{adminConfig, "admin", []string{"system:masters"}},
		{controllerConfig, "system:kube-controller-manager", nil},
		{schedulerConfig, "system:kube-scheduler", nil},
		{kwokConfig, "kwok", []string{"system:masters"}},
	}
	for _, user := range users {
		made, err := ca.Client(user.user, user.groups...)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(kubeconfig(e.url(), ca.PEM, made), e.path(user.file)); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", e.path(adminConfig))
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server's own fairness is limit enough
	e.config = config
	return nil
}

func kubeconfig(server string, ca []byte, made pki.Pair) clientcmdapi.Config {
	const name = "rukpak"
	config := *clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: made.Certificate, ClientKeyData: made.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	return config
}

// Config returns what a client needs to act as cluster administrator, without a rate limit. The caller may change
// it: it is a copy.
func (e *Env) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Kubeconfig returns the path of a kubeconfig file of the cluster administrator. Stop removes it.
func (e *Env) Kubeconfig() string { return e.path(adminConfig) }

func (e *Env) path(elements ...string) string {
	return filepath.Join(append([]string{e.dir.Path}, elements...)...)
}

// writeFiles writes what the servers read at their start: name to content.
func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("credentials of the control plane: %w", err)
		}
	}
	return nil
}
