// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/source/web"
)

// tries is how often a request is sent at once.
const tries = 3

// client makes one for the service. Its error is a *source.Error.
func (a *at) client() (*minio.Client, error) {
	endpoint, err := web.Parse("bucket", a.source.Endpoint, a.source.Insecure)
	if err != nil {
		return nil, err
	}
	invalid := func(err error) error {
		return &source.Error{Kind: source.Terminal, Reason: source.ReasonInvalidReference, Err: fmt.Errorf("bucket %s: %w", a.what(), err)}
	}
	if (endpoint.Path != "" && endpoint.Path != "/") || endpoint.RawQuery != "" {
		return nil, invalid(errors.New("the endpoint is the URL of a service, without a path"))
	}
	transport, err := a.fetcher.options.Transports.Get(a.source.TLS, false)
	if err != nil {
		return nil, invalid(err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:      credentials.NewStaticV4(a.source.AccessKey, a.source.SecretKey, a.source.SessionToken),
		Secure:     endpoint.Scheme == "https",
		Region:     a.region(),
		MaxRetries: tries,
		Transport:  &bounded{outbound.Watched(transport, a.fetcher.options.Stall)},
	})
	if err != nil {
		return nil, invalid(errors.New("the endpoint is none of an S3 service"))
	}
	client.SetAppInfo("rukpak", "1")
	return client, nil
}

// region is needed for signatures only.
func (a *at) region() string {
	if a.source.Region == "" && a.source.AccessKey == "" {
		return "us-east-1"
	}
	return a.source.Region
}

// bounded bounds what is read into memory: everything but objects.
type bounded struct{ base http.RoundTripper }

func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	query := request.URL.Query()
	if query.Has("list-type") || query.Has("location") || response.StatusCode >= http.StatusMultipleChoices {
		response.Body = &boundedBody{response.Body, maxPage}
	}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &protocolError{fmt.Sprintf("its answer is larger than %d bytes", maxPage)}
	}
	return n, err
}
