// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/rules"
)

// Read reads a folder such as /etc/containers, with registries.conf,
// registries.conf.d, certs.d and auth.json, each of which may be absent; or one
// file: a registries.conf, or an auth.json.
func Read(path string) (*rules.Document, error) {
	found := &rules.Document{}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return found, readFile(found, path)
	}
	confs, err := confsIn(path)
	if err != nil {
		return nil, err
	}
	var failures []error
	failures = append(failures, readConfs(found, confs))
	auth := filepath.Join(path, "auth.json")
	data, err := os.ReadFile(auth)
	hasAuth := err == nil
	switch {
	case hasAuth:
		failures = append(failures, docker.ParseConfig(found, auth, data, docker.Containers))
	case !errors.Is(err, fs.ErrNotExist):
		failures = append(failures, err)
	}
	certs := filepath.Join(path, "certs.d")
	if _, err := os.Stat(certs); err != nil && len(confs) == 0 && !hasAuth {
		return nil, fmt.Errorf("%s holds neither registries.conf nor registries.conf.d nor certs.d nor auth.json", path)
	}
	failures = append(failures, docker.ReadCerts(found, certs))
	return found, errors.Join(failures...)
}

// readFile reads one file; its name tells which of them it is.
func readFile(into *rules.Document, path string) error {
	if filepath.Ext(path) != ".json" {
		return readConfs(into, []string{path})
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return docker.ParseConfig(into, path, data, docker.Containers)
}

// confsIn gives registries.conf and the drop-in files in the order in which they
// are read.
func confsIn(dir string) ([]string, error) {
	var confs []string
	if _, err := os.Stat(filepath.Join(dir, "registries.conf")); err == nil {
		confs = append(confs, filepath.Join(dir, "registries.conf"))
	}
	entries, err := os.ReadDir(filepath.Join(dir, "registries.conf.d"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries { // by name
		if !entry.IsDir() && strings.HasSuffix(entry.Name(), ".conf") {
			confs = append(confs, filepath.Join(dir, "registries.conf.d", entry.Name()))
		}
	}
	return confs, nil
}

func readConfs(into *rules.Document, paths []string) error {
	var failures []error
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil {
			err = ParseConf(into, path, data, i > 0)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// add puts rules of one file to those of earlier ones. Of two with one prefix in
// a file the first counts; one of a later file takes the place of an earlier
// file's.
func add(into *rules.Document, list []rules.Rule) {
	earlier := len(into.Rules)
	for _, rule := range list {
		same := func(r rules.Rule) bool { return r.Prefix == rule.Prefix }
		if at := slices.IndexFunc(into.Rules[:earlier], same); at >= 0 {
			into.Rules[at] = rule
			continue
		}
		if at := slices.IndexFunc(into.Rules[earlier:], same); at >= 0 {
			into.NoteOn(into.Rules[earlier+at].From, rule.From, fmt.Sprintf("the table is passed over: an earlier one, at %s, has the same prefix %q", into.Rules[earlier+at].From, rule.Prefix))
			continue
		}
		into.Rules = append(into.Rules, rule)
	}
}
