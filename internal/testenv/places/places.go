// SPDX-License-Identifier: Apache-2.0

// Package places gives tests each kind of place that a shared content store can
// be in, on real servers: where the third step of RukPak's flow keeps what
// several managers share.
package places

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/bucket"
	"rukpak.io/rukpak/internal/content/objects/folder"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/s3server"
)

// Each runs a test with one of each kind. fresh gives an empty place.
func Each(t *testing.T, test func(t *testing.T, fresh func(t *testing.T) objectstest.Place)) {
	t.Run("Folder", func(t *testing.T) { test(t, Folder) })
	t.Run("Bucket", func(t *testing.T) { test(t, Buckets(t, false)) })
	t.Run("Registry", func(t *testing.T) { test(t, Registry) })
}

// Folder is one on this machine.
func Folder(t *testing.T) objectstest.Place { return FolderAt(t.TempDir()) }

// FolderAt is the folder of that name.
func FolderAt(dir string) objectstest.Place {
	return objectstest.Place{
		Open: func(*testing.T) objects.Backend { return folder.New(dir) },
		Harm: func(t *testing.T, name string, harm objectstest.Harm) { HarmFile(t, filepath.Join(dir, name), harm) },
		Litter: func(t *testing.T) {
			for _, name := range []string{"packs/.writing-1", "packs/UPPER", "README", "other-kind/a", "packs/dir/x"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

// HarmFile does harm to a file.
func HarmFile(t *testing.T, path string, harm objectstest.Harm) {
	t.Helper()
	if harm == objectstest.Lose {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	data := objectstest.HarmBytes(t, file, harm)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Buckets starts an S3 server and makes a bucket for each place.
func Buckets(t *testing.T, tls bool) func(t *testing.T) objectstest.Place {
	server := s3server.New(t, s3server.Options{TLS: tls})
	made := 0
	return func(t *testing.T) objectstest.Place {
		made++
		return inBucket(server.Bucket(t, fmt.Sprintf("bucket-%d", made), false), server, tls)
	}
}

const prefix = "shared/here/"

func inBucket(in *s3server.Bucket, server *s3server.Server, tls bool) objectstest.Place {
	return objectstest.Place{
		Many: 70,
		Open: func(t *testing.T) objects.Backend { return OpenBucket(t, server, in.Name, server.Password(), tls) },
		Harm: func(t *testing.T, object string, harm objectstest.Harm) { spoilBucket(t, in, prefix+object, harm) },
		Fail: func(_ *testing.T, what objectstest.Fault) func() {
			server.Faults.Add(fault.Rule{Path: regexp.MustCompile("^/" + in.Name), Action: actions[what]})
			return server.Faults.Clear
		},
		Requests: func() (asked []string) {
			for _, r := range server.Requests() {
				asked = append(asked, r.Method+" "+r.Path)
			}
			return asked
		},
		Litter: func(t *testing.T) {
			for _, key := range []string{"packs/a", prefix + "README", prefix + "packs/UPPER", "shared/here-not/packs/a"} {
				in.Put(t, key, nil)
			}
		},
	}
}

var actions = map[objectstest.Fault]fault.Action{
	objectstest.Busy: fault.Status(503), objectstest.Forbid: fault.Status(403), objectstest.Reset: fault.Reset(), objectstest.Half: fault.Truncate(1000),
}

// OpenBucket gives a place in a bucket, as somebody with a password sees it.
func OpenBucket(t *testing.T, server *s3server.Server, name, password string, tls bool) objects.Backend {
	t.Helper()
	_, host, _ := strings.Cut(server.Endpoint(), "://")
	opened, err := bucket.New(bucket.Options{
		Endpoint: host, Plain: !tls, Region: s3server.Region, Bucket: name, Prefix: "/" + prefix, Page: 30,
		Keys:      &credentials.Static{Value: credentials.Value{AccessKeyID: server.User(), SecretAccessKey: password, SignerType: credentials.SignatureV4}},
		Transport: server.Transport(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// spoilBucket does by the service what happens to a disk below it.
func spoilBucket(t *testing.T, in *s3server.Bucket, key string, harm objectstest.Harm) {
	t.Helper()
	if harm == objectstest.Lose {
		in.Remove(t, key)
		return
	}
	found, err := in.Client.GetObject(t.Context(), in.Name, key, minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in.Put(t, key, objectstest.HarmBytes(t, found, harm))
}
