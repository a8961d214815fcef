// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

const (
	shortTime = 20 * time.Second // of a request that is answered at once
	maxStatus = 64 << 10         // bytes of an answer that is an error
)

// workClient speaks with the content API about the jobs of one provisioner.
type workClient struct {
	http *http.Client
	id   string
	base string // URL of the provisioner
}

func newWorkClient(config *rest.Config, id string) (*workClient, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // each request has a time of its own
	if config.UserAgent == "" {
		config.UserAgent = "rukpak-provisioner/" + id
	}
	to, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	group := contentv1.GroupVersion
	return &workClient{http: to, id: id, base: host.JoinPath("apis", group.Group, group.Version, contentv1.ResourceProvisioners, id).String()}, nil
}

// take waits for a job; nil if there is none.
func (c *workClient) take(ctx context.Context) (*contentv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime+pollSlack)
	defer cancel()
	job := &contentv1.Job{}
	path := "/" + contentv1.Work + "?" + contentv1.ParameterWait + "=" + strconv.Itoa(int(pollTime/time.Second))
	if err := c.do(ctx, http.MethodPost, path, nil, job); err != nil {
		return nil, err
	}
	if job.ID == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	return job, nil
}

func (c *workClient) renew(ctx context.Context, job string) error {
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	return c.do(ctx, http.MethodPost, c.path(job, contentv1.JobRenew), nil, nil)
}

func (c *workClient) finish(ctx context.Context, job string, result contentv1.Result) error {
	return c.do(ctx, http.MethodPost, c.path(job, contentv1.JobResult), result, nil)
}

// content writes the tree of a job.
func (c *workClient) content(ctx context.Context, job string, into *unpacker) error {
	archive := &download{ctx: ctx, begin: func(from int64) (*http.Response, error) {
		return c.get(ctx, c.path(job, contentv1.JobContent), from)
	}}
	defer archive.close()
	return into.unpack(archive)
}

func (c *workClient) read(ctx context.Context, job string, asked contentv1.ReadRequest) ([]*unstructured.Unstructured, error) {
	var answer contentv1.ReadAnswer
	if err := c.do(ctx, http.MethodPost, "/"+contentv1.Read+"/"+job, asked, &answer); err != nil {
		return nil, err
	}
	if answer.Status != nil {
		return nil, &apierrors.StatusError{ErrStatus: *answer.Status}
	}
	return answer.Items, nil
}

func (*workClient) path(job, what string) string {
	return "/" + contentv1.Work + "/" + job + "/" + what
}

// do sends a document and reads one, if there is one.
func (c *workClient) do(ctx context.Context, method, path string, send, into any) error {
	response, err := c.send(ctx, method, path, send)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if into == nil || response.StatusCode == http.StatusNoContent {
		_, err := io.Copy(io.Discard, response.Body)
		return err
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return nil
}

// send sends a document, if there is one.
func (c *workClient) send(ctx context.Context, method, path string, send any) (*http.Response, error) {
	var body io.Reader
	if send != nil {
		encoded, err := json.Marshal(send)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if send != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.roundTrip(request)
}

// get asks for a document from a byte on.
func (c *workClient) get(ctx context.Context, path string, from int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	return c.roundTrip(request)
}

// roundTrip gives the answer to a request if it is none of an error.
func (c *workClient) roundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	return nil, c.refusal(request.Method, response)
}

// refusal gives the Status of an answer, or makes one.
func (c *workClient) refusal(method string, response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxStatus)) // what there is of it
	status := metav1.Status{}
	if err := json.Unmarshal(text, &status); err == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	resource := schema.GroupResource{Group: contentv1.GroupVersion.Group, Resource: contentv1.ResourceProvisioners}
	return apierrors.NewGenericServerResponse(response.StatusCode, method, resource, c.id, string(bytes.TrimSpace(text)), seconds, true)
}

// jobReader reads the cluster for a job.
type jobReader struct {
	api *workClient
	job string
}

// Get reads one object.
func (r jobReader) Get(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	if name.Name == "" {
		return nil, errors.New("an object is read by its name, which is empty")
	}
	items, err := r.api.read(ctx, r.job, contentv1.ReadRequest{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: name.Namespace, Name: name.Name})
	if err != nil {
		return nil, err
	}
	if len(items) != 1 || items[0] == nil {
		return nil, fmt.Errorf("asked for one object, the content API gave %d", len(items))
	}
	return items[0], nil
}

// List reads the objects of a namespace, or all.
func (r jobReader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	return r.api.read(ctx, r.job, contentv1.ReadRequest{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: namespace})
}
