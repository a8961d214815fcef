// SPDX-License-Identifier: Apache-2.0

package s3server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Client is one of the owner, or of whoever has other keys.
func (s *Server) Client(user, password string) (*minio.Client, error) {
	return minio.New(strings.TrimPrefix(strings.TrimPrefix(s.endpoint, "https://"), "http://"), &minio.Options{
		Creds:  credentials.NewStaticV4(user, password, ""),
		Secure: s.options.TLS, Region: Region, Transport: s.Transport(), BucketLookup: minio.BucketLookupPath,
	})
}

// Transport trusts the server.
func (s *Server) Transport() http.RoundTripper {
	transport := &http.Transport{}
	if s.ca != nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.ca)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return transport
}

// Bucket is one that the owner made.
type Bucket struct {
	Name   string
	Client *minio.Client
}

// Bucket makes one. versioned keeps what objects were before.
func (s *Server) Bucket(t testing.TB, name string, versioned bool) *Bucket {
	t.Helper()
	client, err := s.Client(s.options.User, s.options.Password)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), name, minio.MakeBucketOptions{Region: Region}); err != nil {
		t.Fatal(err)
	}
	if versioned {
		if err := client.EnableVersioning(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return &Bucket{Name: name, Client: client}
}

// Put stores an object and gives its version, which is "" where none are kept.
func (b *Bucket) Put(t testing.TB, key string, content []byte) string {
	t.Helper()
	// In one piece, signed as a whole: of an empty body that comes in signed chunks
	// the server leaves the last chunk unread, and takes it for the next request.
	core, sum := minio.Core{Client: b.Client}, sha256.Sum256(content)
	info, err := core.PutObject(t.Context(), b.Name, key, bytes.NewReader(content), int64(len(content)), "", hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{DisableContentSha256: true})
	if err != nil {
		t.Fatal(err)
	}
	return info.VersionID
}

// Remove takes an object away.
func (b *Bucket) Remove(t testing.TB, key string) {
	t.Helper()
	if err := b.Client.RemoveObject(t.Context(), b.Name, key, minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Open lets everybody read what is in the bucket.
func (b *Bucket) Open(t testing.TB) {
	t.Helper()
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:ListBucket"],` +
		`"Resource":["arn:aws:s3:::` + b.Name + `","arn:aws:s3:::` + b.Name + `/*"]}]}`
	if err := b.Client.SetBucketPolicy(context.WithoutCancel(t.Context()), b.Name, policy); err != nil {
		t.Fatal(err)
	}
}
