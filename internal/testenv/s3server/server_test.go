// SPDX-License-Identifier: Apache-2.0

package s3server

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"rukpak.io/rukpak/internal/testenv/fault"
)

func read(t *testing.T, client *minio.Client, bucket, key string, options minio.GetObjectOptions) (string, error) {
	t.Helper()
	object, err := client.GetObject(t.Context(), bucket, key, options)
	if err != nil {
		return "", err
	}
	defer object.Close() //nolint:errcheck // all that matters was read
	data, err := io.ReadAll(object)
	return string(data), err
}

func TestItIsAnS3Server(t *testing.T) {
	for name, options := range map[string]Options{"HTTP": {}, "HTTPS": {TLS: true, User: "ann", Password: "secret-of-ann"}} {
		t.Run(name, func(t *testing.T) {
			server := New(t, options)
			bucket := server.Bucket(t, "things", true)
			first := bucket.Put(t, "a/b", []byte("1"))
			second := bucket.Put(t, "a/b", []byte("2"))
			bucket.Put(t, "c", []byte("3"))
			if first == "" || first == second {
				t.Errorf("versions %q and %q", first, second)
			}
			if got, err := read(t, bucket.Client, "things", "a/b", minio.GetObjectOptions{VersionID: first}); err != nil || got != "1" {
				t.Errorf("the first version: %q, %v", got, err)
			}
			keys := []string{}
			for object := range bucket.Client.ListObjects(t.Context(), "things", minio.ListObjectsOptions{Recursive: true, MaxKeys: 1}) {
				if object.Err != nil {
					t.Fatal(object.Err)
				}
				keys = append(keys, object.Key)
			}
			if strings.Join(keys, " ") != "a/b c" {
				t.Errorf("listing in pages: %q", keys)
			}
			large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
			info, err := bucket.Client.PutObject(t.Context(), "things", "large", bytes.NewReader(large), -1, minio.PutObjectOptions{PartSize: 5 << 20})
			if err != nil || !strings.HasSuffix(info.ETag, "-4") {
				t.Fatalf("multipart: %+v, %v", info, err)
			}
			if got, err := read(t, bucket.Client, "things", "large", minio.GetObjectOptions{}); err != nil || got != string(large) {
				t.Errorf("multipart: %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestItChecksWhoAsks(t *testing.T) {
	server := New(t, Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "a", []byte("1"))
	stranger, err := server.Client(server.User(), "wrong")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, stranger, "things", "a", minio.GetObjectOptions{}); minio.ToErrorResponse(err).StatusCode != http.StatusForbidden {
		t.Errorf("a wrong signature: %v", err)
	}
	get := func() int {
		response, err := http.Get(server.Endpoint() + "/things/a")
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	if got := get(); got != http.StatusForbidden {
		t.Errorf("nobody: %d", got)
	}
	bucket.Open(t)
	if got := get(); got != http.StatusOK {
		t.Errorf("nobody, when it is open: %d", got)
	}
}

func TestItFailsWhenToldTo(t *testing.T) {
	server := New(t, Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "a", []byte("1"))
	server.ForgetRequests()
	server.Faults.Add(fault.Rule{Times: 1, Action: fault.Status(http.StatusServiceUnavailable)})
	if got, err := read(t, bucket.Client, "things", "a", minio.GetObjectOptions{}); err != nil || got != "1" {
		t.Errorf("after one 503: %q, %v", got, err)
	}
	if n := len(server.Requests()); n < 2 {
		t.Errorf("%d requests", n)
	}
}
