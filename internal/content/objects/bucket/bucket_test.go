// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/bucket"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/s3server"
)

func TestBucket(t *testing.T) {
	for _, tls := range []bool{true, false} {
		t.Run(fmt.Sprintf("TLS=%v", tls), func(t *testing.T) {
			server := s3server.New(t, s3server.Options{TLS: tls})
			made := 0
			objectstest.Run(t, func(t *testing.T) objectstest.Place {
				made++
				return place(t, server, fmt.Sprintf("bucket-%d", made), tls)
			})
		})
	}
}

func place(t *testing.T, server *s3server.Server, name string, tls bool) objectstest.Place {
	made := server.Bucket(t, name, false)
	return objectstest.Place{
		Many: 70,
		Open: func(t *testing.T) objects.Backend { return open(t, server, name, server.Password(), tls) },
		Harm: func(t *testing.T, object string, harm objectstest.Harm) { spoil(t, made, "shared/here/"+object, harm) },
		Fail: func(_ *testing.T, what objectstest.Fault) func() {
			action := map[objectstest.Fault]fault.Action{
				objectstest.Busy: fault.Status(503), objectstest.Forbid: fault.Status(403), objectstest.Reset: fault.Reset(), objectstest.Half: fault.Truncate(1000),
			}[what]
			server.Faults.Add(fault.Rule{Path: regexp.MustCompile("^/" + name), Action: action})
			return server.Faults.Clear
		},
		Litter: func(t *testing.T) {
			for _, key := range []string{"packs/a", "shared/here/README", "shared/here/packs/UPPER", "shared/here-not/packs/a"} {
				made.Put(t, key, nil)
			}
		},
	}
}

func open(t *testing.T, server *s3server.Server, name, password string, tls bool) objects.Backend {
	t.Helper()
	_, host, _ := strings.Cut(server.Endpoint(), "://")
	opened, err := bucket.New(bucket.Options{
		Endpoint: host, Plain: !tls, Region: s3server.Region, Bucket: name, Prefix: "/shared/here/", Page: 30,
		Keys:      &credentials.Static{Value: credentials.Value{AccessKeyID: server.User(), SecretAccessKey: password, SignerType: credentials.SignatureV4}},
		Transport: server.Transport(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// spoil does by the service what happens to a disk below it.
func spoil(t *testing.T, in *s3server.Bucket, key string, harm objectstest.Harm) {
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

func TestErrorsNameTheBucketAndWhatToDo(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	server.Bucket(t, "there", false)
	for _, tc := range []struct {
		backend objects.Backend
		kind    objects.Kind
		says    []string
	}{
		{open(t, server, "absent", server.Password(), false), objects.NoPlace, []string{"s3://absent/shared/here", "404 Not Found (NoSuchBucket)", "make it"}},
		{open(t, server, "there", "wrong", false), objects.Refused, []string{"s3://there/shared/here", "SignatureDoesNotMatch", "credentials"}},
	} {
		for _, err := range []error{
			tc.backend.Put(t.Context(), "packs/a", objects.Bytes([]byte("x"))),
			tc.backend.List(t.Context(), func(string) error { return nil }),
		} {
			if !objects.Is(err, tc.kind) {
				t.Fatalf("got %v", err)
			}
			for _, says := range tc.says {
				if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), server.Password()) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		}
	}
}

func TestAnEndpointThatIsNoneIsRefused(t *testing.T) {
	if _, err := bucket.New(bucket.Options{Endpoint: "not a host/path", Bucket: "b"}); err == nil {
		t.Error("it is taken")
	}
}
