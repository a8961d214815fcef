// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"rukpak.io/rukpak/internal/provisioners"
	"rukpak.io/rukpak/internal/sandbox"
	"rukpak.io/rukpak/provisioner"
)

// minRenderMemory is what a process that renders needs at least: the program itself takes some 100 MiB of it.
const minRenderMemory = 192 << 20

// SetRenderMemory reads the value of the flag.
func (o *Options) SetRenderMemory(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is no amount of memory such as 384Mi", text)
	}
	if o.RenderMemory = quantity.Value(); o.RenderMemory < minRenderMemory {
		return fmt.Errorf("%q is less than the %dMi that such a process needs", text, minRenderMemory>>20)
	}
	return nil
}

// Render is what a process of a manager does that renders. It returns the exit code of the program.
func Render() int { return sandbox.Serve(provisioners.All()...) }

// ownProvisioners are those that the manager serves itself, by ID. What is a program runs in processes of its own.
func ownProvisioners(mgr ctrl.Manager, options Options) (map[string]provisioner.Provisioner, error) {
	pool := sandbox.New(sandbox.Options{Processes: options.RenderProcesses, Memory: options.RenderMemory, CPU: options.RenderCPU})
	all := provisioners.ByID()
	for id, one := range all {
		if provisioners.RunsPrograms(id) {
			all[id] = pool.Wrap(one)
		}
	}
	return all, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		pool.Close()
		return nil
	}))
}
