// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

// ReadCerts reads a folder certs.d, in which each host has a folder: *.crt are
// authorities, and x.cert with x.key is a client certificate. A folder that does
// not exist has none.
func ReadCerts(into *rules.Document, root string) error {
	hosts, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failures []error
	for _, host := range hosts {
		dir := filepath.Join(root, host.Name())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		found, err := ReadHostCerts(dir)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		found.note(into, dir)
		if found.CA != nil || found.Pair != nil {
			into.HostAccess(host.Name(), dir, func(a *rules.Access) { found.Apply(a, dir) })
		}
	}
	return errors.Join(failures...)
}

// Certs are the certificates of one host.
type Certs struct {
	CA    []byte
	Pair  *rules.KeyPair
	pairs int
}

func (c *Certs) note(into *rules.Document, dir string) {
	if c.pairs > 1 {
		into.Note(dir, fmt.Sprintf("of %d client certificates only the first is used", c.pairs))
	}
}

// Apply puts the certificates into an Access.
func (c *Certs) Apply(a *rules.Access, dir string) {
	if c.CA != nil {
		a.CA, a.Origins.CA = c.CA, dir
	}
	if c.Pair != nil {
		a.Certificate, a.Origins.Certificate = c.Pair, dir
	}
}

// ReadHostCerts reads the folder of one host.
func ReadHostCerts(dir string) (*Certs, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := &Certs{}
	for _, entry := range entries { // by name
		path := filepath.Join(dir, entry.Name())
		switch filepath.Ext(path) {
		case ".crt":
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(data, []byte("-----BEGIN CERTIFICATE-----")) {
				return nil, &tomlfile.Error{File: path, Problem: "it holds no certificate in PEM"}
			}
			found.CA = append(found.CA, append(bytes.TrimSpace(data), '\n')...)
		case ".cert":
			pair, err := ReadPair(path, strings.TrimSuffix(path, ".cert")+".key")
			if err != nil {
				return nil, err
			}
			if found.pairs++; found.Pair == nil {
				found.Pair = pair
			}
		case ".key":
			if _, err := os.Stat(strings.TrimSuffix(path, ".key") + ".cert"); errors.Is(err, fs.ErrNotExist) {
				return nil, &tomlfile.Error{File: path, Problem: "it is a key without a certificate: there is no file of the same name that ends in .cert"}
			}
		}
	}
	return found, nil
}

// ReadPair reads a certificate and its key.
func ReadPair(certificate, key string) (*rules.KeyPair, error) {
	pair := &rules.KeyPair{}
	var err error
	if pair.Certificate, err = os.ReadFile(certificate); err != nil {
		return nil, err
	}
	pair.Key, err = os.ReadFile(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &tomlfile.Error{File: certificate, Problem: fmt.Sprintf("it has no key: there is no file %s", filepath.Base(key))}
	}
	return pair, err
}

// WriteCerts makes folders of certificates below a folder.
func WriteCerts(d *rules.Document, below string, files rules.Files, notes *[]rules.Note) {
	seen := map[string]*rules.Access{}
	for i := range d.Rules {
		r := &d.Rules[i]
		writeCerts(r.PrimaryHost(), r.From, &r.Primary, below, files, notes, seen)
		for m := range r.Mirrors {
			host, _ := rules.Split(r.Mirrors[m].Location)
			writeCerts(host, r.Mirrors[m].From, &r.Mirrors[m].Access, below, files, notes, seen)
		}
		if _, path := rules.Split(r.Prefix); path != "" && r.Rewrite == "" && (r.Primary.CA != nil || r.Primary.Certificate != nil) {
			*notes = append(*notes, rules.Note{Where: r.From, What: fmt.Sprintf("its certificates are widened to all of %s: folders of certificates are by host", r.PrimaryHost())})
		}
	}
}

func writeCerts(host, from string, a *rules.Access, below string, files rules.Files, notes *[]rules.Note, seen map[string]*rules.Access) {
	if a.CA == nil && a.Certificate == nil {
		return
	}
	if host == "" || host[0] == '*' {
		*notes = append(*notes, rules.Note{Where: from, What: "certificates for every host under a wildcard are lost: folders of certificates are by host"})
		return
	}
	dir := below + "/" + host + "/"
	if a.CA != nil && !slices.Equal(files[dir+"ca.crt"], a.CA) {
		files[dir+"ca.crt"] = append(files[dir+"ca.crt"], a.CA...) // two rules may trust two authorities
	}
	if a.Certificate == nil {
		return
	}
	if other := seen[host]; other != nil && !slices.Equal(other.Certificate.Certificate, a.Certificate.Certificate) {
		*notes = append(*notes, rules.Note{Where: from, What: fmt.Sprintf("its client certificate is lost: another one is kept for %s, and the folder is by host", host)})
		return
	}
	seen[host] = a
	files[dir+"client.cert"], files[dir+"client.key"] = a.Certificate.Certificate, a.Certificate.Key
}
