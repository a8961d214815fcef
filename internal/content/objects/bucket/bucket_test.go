// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/bucket"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/places"
	"rukpak.io/rukpak/internal/testenv/s3server"
)

func TestBucket(t *testing.T) {
	for _, tls := range []bool{true, false} {
		t.Run(fmt.Sprintf("TLS=%v", tls), func(t *testing.T) { objectstest.Run(t, places.Buckets(t, tls)) })
	}
}

func TestErrorsNameTheBucketAndWhatToDo(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	server.Bucket(t, "there", false)
	for _, tc := range []struct {
		backend objects.Backend
		kind    objects.Kind
		says    []string
	}{
		{places.OpenBucket(t, server, "absent", server.Password(), false), objects.NoPlace, []string{"s3://absent/shared/here", "404 Not Found (NoSuchBucket)", "make it"}},
		{places.OpenBucket(t, server, "there", "wrong", false), objects.Refused, []string{"s3://there/shared/here", "SignatureDoesNotMatch", "credentials"}},
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
