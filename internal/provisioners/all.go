// SPDX-License-Identifier: Apache-2.0

// Package provisioners is the one list of the provisioners that come with RukPak. The manager serves them, and the
// command line renders with them where there is no cluster.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) they are
// those that implement provisioner.Render. Each is a child package, and none knows of another.
package provisioners

import (
	"slices"

	"rukpak.io/rukpak/internal/provisioners/helm"
	"rukpak.io/rukpak/internal/provisioners/imgpkg"
	"rukpak.io/rukpak/internal/provisioners/kustomize"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/provisioners/raw"
	"rukpak.io/rukpak/internal/provisioners/registryv1"
	"rukpak.io/rukpak/provisioner"
)

// All makes one of each, in the order of their IDs.
func All() []provisioner.Provisioner {
	return []provisioner.Provisioner{
		helm.New(),
		imgpkg.New(),
		kustomize.New(),
		plain.New(),
		raw.New(),
		registryv1.New(),
	}
}

// programs are those whose content is a program that is run: templates, overlays, rules of kbld, and descriptions of operators,
// which ask for far more than they hold. They take as much time and memory as whoever wrote the content likes.
var programs = []string{helm.ID, imgpkg.ID, kustomize.ID, registryv1.ID}

// RunsPrograms tells whether a provisioner needs bounds from outside.
func RunsPrograms(id string) bool { return slices.Contains(programs, id) }

// ByID makes one of each, by ID.
func ByID() map[string]provisioner.Provisioner {
	all := map[string]provisioner.Provisioner{}
	for _, one := range All() {
		all[one.ID()] = one
	}
	return all
}

// IDs lists the IDs, sorted.
func IDs() []string {
	var all []string
	for _, one := range All() {
		all = append(all, one.ID())
	}
	return all
}
