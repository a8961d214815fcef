// SPDX-License-Identifier: Apache-2.0

// Package convert names the formats of registry configuration, and reads and
// writes each by its name. It serves the manager, which reads the files of a
// node as what its objects override, and the command line. It belongs to
// internal/registry, in the first step of RukPak's flow.
package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry/containerd"
	"rukpak.io/rukpak/internal/registry/containers"
	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/objects"
	"rukpak.io/rukpak/internal/registry/rules"
)

// Format is a format of files.
type Format string

// The formats.
const (
	Containers Format = "containers" // registries.conf, certs.d, auth.json
	Containerd Format = "containerd" // hosts.toml, config.json
	Docker     Format = "docker"     // config.json, daemon.json, certs.d
	RukPak     Format = "rukpak"     // RegistryConfig objects and Secrets
)

// Formats are all of them.
func Formats() []Format { return []Format{Containers, Containerd, Docker, RukPak} }

// ParseFormat takes the name of a format.
func ParseFormat(name string) (Format, error) {
	if slices.Contains(Formats(), Format(name)) {
		return Format(name), nil
	}
	var names []string
	for _, format := range Formats() {
		names = append(names, string(format))
	}
	return "", fmt.Errorf("%q is not a format of registry configuration; there are %s", name, strings.Join(names, ", "))
}

// ParsePlace takes "FORMAT=PATH".
func ParsePlace(text string) (Format, string, error) {
	name, path, found := strings.Cut(text, "=")
	if !found || path == "" {
		return "", "", fmt.Errorf("%q is not FORMAT=PATH, such as containers=/etc/containers", text)
	}
	format, err := ParseFormat(name)
	return format, path, err
}

// Read reads the files of a format. Errors name file and line; several are
// joined.
func Read(ctx context.Context, format Format, path string) (*rules.Document, error) {
	switch format {
	case Containers:
		return containers.Read(path)
	case Containerd:
		return containerd.Read(path)
	case Docker:
		return docker.Read(path)
	case RukPak:
		return objects.Read(ctx, path)
	}
	_, err := ParseFormat(string(format))
	return nil, err
}

// Write makes the files of a format, and says what they cannot express. name is
// that of the objects of RukPak.
func Write(format Format, document *rules.Document, name string) (rules.Files, []rules.Note, error) {
	switch format {
	case Containers:
		return containers.Write(document)
	case Containerd:
		return containerd.Write(document)
	case Docker:
		return docker.Write(document)
	case RukPak:
		return objects.Write(document, name)
	}
	_, err := ParseFormat(string(format))
	return nil, nil, err
}
