// SPDX-License-Identifier: Apache-2.0

package devenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/process"
)

// contentService leads the API server to the manager on this machine: Kubernetes
// allows no endpoint on the loopback address, but a name for one.
const contentService = `{"apiVersion": "v1", "kind": "Service",
	"metadata": {"namespace": "rukpak-system", "name": "rukpak-content", "labels": {"app.kubernetes.io/part-of": "rukpak"}},
	"spec": {"type": "ExternalName", "externalName": "localhost"}}`

const contentAPIService = "v1alpha1.content.rukpak.io"

// contentTime is how long the API server gets to notice that the content API is there.
const contentTime = time.Minute

// installContentAPI is config/contentapi for a manager that listens on a port of this machine. The port stays the same
// when the manager is started again.
func (e *Env) installContentAPI(ctx context.Context) (err error) {
	if e.contentPort, err = process.ReservePort(); err != nil {
		return err
	}
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "contentapi", "apiservice.yaml"))
	if err != nil {
		return err
	}
	const port = "port: 443"
	if !strings.Contains(string(text), port) {
		return fmt.Errorf("config/contentapi/apiservice.yaml: there is no %q to replace", port)
	}
	service := strings.Replace(string(text), port, fmt.Sprintf("port: %d", e.contentPort.Number), 1)
	for _, object := range []string{contentService, service} {
		if _, err := e.Cluster.KubectlInput(ctx, object, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// awaitContentAPI waits until the API server reaches the content API of the manager, which took over from none or from
// an earlier one with other keys: until then its answers would be errors.
func (e *Env) awaitContentAPI(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, contentTime)
	defer cancel()
	for {
		_, err := e.Cluster.Kubectl(ctx, "get", "--raw", "/apis/content.rukpak.io/v1alpha1")
		if err == nil {
			return nil
		}
		select {
		case <-e.manager.Done():
			return e.manager.Err()
		case <-ctx.Done():
			return fmt.Errorf("APIService %s: %w; the manager said last:\n%s", contentAPIService, err, e.manager.Tail(20))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
