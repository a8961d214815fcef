// SPDX-License-Identifier: Apache-2.0

// Package bucket keeps objects in a bucket of an S3-compatible service. It is one
// place of package objects, in the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// The service's own unit fits: an object appears whole or not at all.
package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"rukpak.io/rukpak/internal/content/objects"
)

// Options say where a bucket is.
type Options struct {
	Endpoint string // host and perhaps port
	Plain    bool   // speak plain HTTP
	Region   string // "" where the service does not care
	Bucket   string
	Prefix   string // names of objects begin with it and a slash; "" for none
	// Keys are read again now and then, so that they can be changed. nil means
	// that requests are not signed.
	Keys credentials.Provider
	Page int // names that one request lists; 0 for 1000, of which services give at most
	// Transport sends the requests; nil for the default.
	Transport http.RoundTripper
}

// Bucket is a place.
type Bucket struct {
	options Options
	client  *minio.Client
}

var _ objects.Backend = (*Bucket)(nil)

// New makes a place of a bucket. Nothing is asked yet.
func New(options Options) (*Bucket, error) {
	options.Prefix = strings.Trim(options.Prefix, "/")
	keys := credentials.NewStaticV4("", "", "")
	if options.Keys != nil {
		keys = credentials.New(options.Keys)
	}
	region := options.Region
	if region == "" {
		region = "us-east-1" // what services without regions expect in signatures
	}
	client, err := minio.New(options.Endpoint, &minio.Options{
		Creds: keys, Secure: !options.Plain, Region: region, MaxRetries: 1, Transport: options.Transport,
	})
	if err != nil {
		return nil, errors.New("the endpoint is none of an S3 service")
	}
	client.SetAppInfo("rukpak", "1")
	return &Bucket{options: options, client: client}, nil
}

// String gives the URL.
func (b *Bucket) String() string { return "s3://" + path.Join(b.options.Bucket, b.options.Prefix) }

func (b *Bucket) key(name string) string { return path.Join(b.options.Prefix, name) }

// maxSingle is the size up to which an object is sent as one request. Larger ones
// go in parts, of which a killed manager may leave some behind; services can be
// told to remove those.
const (
	maxSingle = 4 << 30
	partSize  = 64 << 20
)

// Put stores an object.
func (b *Bucket) Put(ctx context.Context, name string, body objects.Body) error {
	if err := objects.CheckName(name); err != nil {
		return &objects.Error{Place: b.String(), Op: "put " + name, Kind: objects.Broken, Err: err}
	}
	// With its digest a service can tell half a body from a whole one; by its length
	// alone not all do.
	sum, err := objects.Sum(body)
	if err != nil {
		return err
	}
	source, err := objects.Watch(body)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it is only read
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: partSize, NumThreads: 1}
	if body.Size > maxSingle {
		_, err = b.client.PutObject(ctx, b.options.Bucket, b.key(name), onlyReader{source}, body.Size, options)
	} else {
		core := minio.Core{Client: b.client}
		options.DisableContentSha256 = true // the one for pieces: that of the whole is signed
		_, err = core.PutObject(ctx, b.options.Bucket, b.key(name), onlyReader{source}, body.Size, "", sum.Encoded(), options)
	}
	if failed := source.Failed(); failed != nil {
		return failed
	}
	return b.failed(ctx, "put "+name, err)
}

// onlyReader keeps minio-go from closing a body while it is being read.
type onlyReader struct{ io.Reader }

// Get begins to read an object.
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	core := minio.Core{Client: b.client}
	body, _, _, err := core.GetObject(ctx, b.options.Bucket, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.failed(ctx, "get "+name, err)
	}
	return &objects.Reader{Body: body, Judge: func(err error) error { return b.failed(ctx, "get "+name, err) }}, nil
}

// Stat describes an object.
func (b *Bucket) Stat(ctx context.Context, name string) (objects.Info, error) {
	info, err := b.client.StatObject(ctx, b.options.Bucket, b.key(name), minio.StatObjectOptions{})
	if err != nil {
		return objects.Info{}, b.failed(ctx, "look at "+name, err)
	}
	return objects.Info{Size: info.Size, Written: info.LastModified}, nil
}

// List pages through the bucket.
func (b *Bucket) List(ctx context.Context, each func(string) error) error {
	prefix := ""
	if b.options.Prefix != "" {
		prefix = b.options.Prefix + "/"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing, should it not be read to its end
	for info := range b.client.ListObjects(ctx, b.options.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, MaxKeys: b.options.Page}) {
		if info.Err != nil {
			return b.failed(ctx, "list it", info.Err)
		}
		if name := strings.TrimPrefix(info.Key, prefix); objects.IsName(name) {
			if err := each(name); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.options.Bucket, b.key(name), minio.RemoveObjectOptions{})
	return b.failed(ctx, "remove "+name, err)
}
