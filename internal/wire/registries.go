// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/internal/controller/registryconfig"
	"rukpak.io/rukpak/internal/registry/objects"
)

// registryFiles reads the registry configuration of the node, if there is one.
func registryFiles(ctx context.Context, mgr ctrl.Manager, options Options) (*registryconfig.Files, error) {
	if options.RegistryFiles == "" {
		return nil, nil
	}
	files, err := registryconfig.OpenFiles(log.IntoContext(ctx, mgr.GetLogger()), options.RegistryFiles)
	if err != nil {
		return nil, fmt.Errorf("registry configuration %s: %w", options.RegistryFiles, err)
	}
	return files, nil
}

func (p *parts) registryConfig(mgr ctrl.Manager) error {
	return (&registryconfig.Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Config: p.registries, Files: p.registryFiles,
		Namespace: p.options.ownNamespace(),
	}).Register(mgr)
}

// ownNamespace is where the objects stand that cluster-scoped kinds name.
func (o Options) ownNamespace() string { return cmp.Or(o.RegistryNamespace, objects.DefaultNamespace) }
