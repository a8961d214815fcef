// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/rules"
)

const (
	hostsFile  = "hosts.toml"
	defaultDir = "_default"
)

// Read reads a folder such as /etc/containerd, with certs.d and Docker's
// config.json, each of which may be absent; a folder like certs.d itself, or one
// host's folder of it; or one file, a hosts.toml or config.json.
func Read(path string) (*rules.Document, error) {
	found := &rules.Document{}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return found, readFile(found, path)
	}
	if _, err := os.Stat(filepath.Join(path, hostsFile)); err == nil {
		return found, readHostsFile(found, filepath.Join(path, hostsFile))
	}
	tree := filepath.Join(path, "certs.d")
	if info, err := os.Stat(tree); err != nil || !info.IsDir() {
		tree = path
	}
	var failures []error
	failures = append(failures, readTree(found, tree))
	config := filepath.Join(path, "config.json")
	switch data, err := os.ReadFile(config); {
	case err == nil:
		failures = append(failures, docker.ParseConfig(found, config, data, docker.Docker))
	case !errors.Is(err, fs.ErrNotExist):
		failures = append(failures, err)
	case len(found.Rules) == 0 && errors.Join(failures...) == nil:
		return nil, fmt.Errorf("%s holds no folder of a host, such as docker.io, and no config.json", path)
	}
	return found, errors.Join(failures...)
}

// readFile reads one file; its name tells which of them it is.
func readFile(into *rules.Document, path string) error {
	switch filepath.Base(path) {
	case hostsFile:
		return readHostsFile(into, path)
	case "config.json":
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return docker.ParseConfig(into, path, data, docker.Docker)
	}
	return fmt.Errorf("%s is neither a %s nor a config.json, nor a folder with them", path, hostsFile)
}

// readHostsFile reads one hosts.toml: the folder that it stands in says which
// host it is about.
func readHostsFile(into *rules.Document, path string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir := filepath.Base(filepath.Dir(whole))
	host := hostOf(dir)
	if host != "*" && host != "localhost" && !strings.ContainsAny(host, ".:") {
		return fmt.Errorf("%s: the name of its folder says which host a %s is about, and %q is none: it must be such as docker.io/%s", path, hostsFile, dir, hostsFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rule, err := ParseHosts(into, host, path, data)
	if err == nil {
		into.Rules = append(into.Rules, rule)
	}
	return err
}

func readTree(into *rules.Document, tree string) error {
	entries, err := os.ReadDir(tree)
	if err != nil {
		return err
	}
	var failures []error
	seen := map[string]string{}
	slices.SortStableFunc(entries, preferred)
	for _, entry := range entries {
		dir := filepath.Join(tree, entry.Name())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue // "..data" is how mounted ConfigMaps keep their files
		}
		host := hostOf(entry.Name())
		if first, twice := seen[host]; twice {
			into.NoteOn(filepath.Join(first, hostsFile), dir, fmt.Sprintf("the folder is passed over: %s is about the same host", first))
			continue
		}
		seen[host] = dir
		rule, err := readHost(into, host, dir)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		into.Rules = append(into.Rules, rule)
	}
	return errors.Join(failures...)
}

// preferred sorts the spelling "host_5000_" before "host:5000", as containerd
// looks for it.
func preferred(a, b fs.DirEntry) int {
	if x, y := hostOf(a.Name()), hostOf(b.Name()); x != y {
		return strings.Compare(x, y)
	}
	return strings.Compare(b.Name(), a.Name()) // "_" sorts after ":"
}

var portDir = regexp.MustCompile(`^(.+)_([0-9]+)_$`)

// hostOf gives the prefix that a folder is about.
func hostOf(dir string) string {
	if dir == defaultDir {
		return "*"
	}
	if m := portDir.FindStringSubmatch(dir); m != nil {
		return m[1] + ":" + m[2]
	}
	return dir
}

// dirOf is the folder for a host.
func dirOf(host string) string {
	if host == "*" {
		return defaultDir
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[:i] + "_" + host[i+1:] + "_"
	}
	return host
}

// readHost reads the folder of one host. Also an empty one makes a rule: it
// hides the folder _default.
func readHost(into *rules.Document, host, dir string) (rules.Rule, error) {
	file := filepath.Join(dir, hostsFile)
	data, err := os.ReadFile(file)
	if err == nil {
		return ParseHosts(into, host, file, data)
	}
	rule := rules.Rule{Prefix: host, From: dir}
	if !errors.Is(err, fs.ErrNotExist) {
		return rule, err
	}
	certs, err := docker.ReadHostCerts(dir)
	if err != nil {
		return rule, err
	}
	certs.Apply(&rule.Primary, dir)
	if certs.CA == nil && certs.Pair == nil {
		into.NoteOn(rule.From, dir, "the folder has no hosts.toml and no certificates; it still hides the folder _default")
	}
	return rule, nil
}
