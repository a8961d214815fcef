// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/provisioner"
)

// Jobs is the work of provisioners that run outside of the manager; see remote.Broker.
type Jobs interface {
	Take(ctx context.Context, w remote.Worker) (*contentv1.Job, error)
	Renew(w remote.Worker, job string) error
	Content(w remote.Worker, job string) (fs.FS, error)
	Reader(w remote.Worker, job string) (provisioner.Reader, error)
	Finish(w remote.Worker, job string, body []byte) error
	Fail(w remote.Worker, job string, reason error) error
}

// How long a request for work is held, which is below what the API server lets a request take (a minute, if it is not
// told otherwise), and how large a request to read may be.
const (
	usualWait   = 25 * time.Second
	longestWait = 50 * time.Second
	maxRead     = 64 << 10
)

// worker is who asks, for which provisioner.
func (c *call) worker() (remote.Worker, error) {
	if c.server.Jobs == nil {
		return remote.Worker{}, notFound("this manager has no work for provisioners outside of it")
	}
	return remote.Worker{ID: c.info.Name, User: c.user.GetName()}, nil
}

// work answers with a job, or takes what a worker says of his.
func (c *call) work() error {
	w, err := c.worker()
	if err != nil {
		return err
	}
	if c.path == "" {
		return c.take(w)
	}
	switch job, action, _ := strings.Cut(c.path, "/"); action {
	case contentv1.JobRenew:
		if err := c.server.Jobs.Renew(w, job); err != nil {
			return workFault(err)
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	case contentv1.JobResult:
		return c.finish(w, job)
	default:
		return notFound("a job has %s and %s to post to, and %s to get; not %q", contentv1.JobRenew, contentv1.JobResult, contentv1.JobContent, action)
	}
}

func (c *call) take(w remote.Worker) error {
	query := c.r.URL.Query()
	if err := known(query, contentv1.ParameterWait); err != nil {
		return err
	}
	wait := usualWait
	if text := query.Get(contentv1.ParameterWait); text != "" {
		seconds, err := strconv.Atoi(text)
		if wait = time.Duration(seconds) * time.Second; err != nil || wait < 0 || wait > longestWait {
			return apierrors.NewBadRequest(fmt.Sprintf("%s=%q is no number of seconds from 0 to %d", contentv1.ParameterWait, text, int(longestWait/time.Second)))
		}
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), wait)
	defer cancel()
	job, err := c.server.Jobs.Take(ctx, w)
	switch {
	case err != nil:
		return workFault(err)
	case job == nil && context.Cause(c.r.Context()) != nil:
		return workFault(&remote.StoppingError{}) // or he is gone, and reads nothing
	case job == nil:
		c.w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(c.w, http.StatusOK, job)
	}
	return nil
}

func (c *call) finish(w remote.Worker, job string) error {
	if err := c.server.Jobs.Renew(w, job); err != nil {
		return workFault(err) // before reading what may be large
	}
	select {
	case c.server.results <- struct{}{}:
		defer func() { <-c.server.results }()
	case <-c.r.Context().Done():
		return c.r.Context().Err()
	}
	var body bytes.Buffer
	switch _, err := io.Copy(&body, io.LimitReader(c.r.Body, remote.MaxResult+1)); {
	case err != nil:
		return apierrors.NewBadRequest(fmt.Sprintf("the result did not arrive: %v", err)) // he may send it again
	case body.Len() > remote.MaxResult:
		err := c.server.Jobs.Fail(w, job, fmt.Errorf("it is larger than %d MiB", remote.MaxResult>>20))
		return workFault(err)
	}
	if err := c.server.Jobs.Finish(w, job, body.Bytes()); err != nil {
		return workFault(err)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// workContent answers with the tree of a job.
func (c *call) workContent() error {
	w, err := c.worker()
	if err != nil {
		return err
	}
	job, what, _ := strings.Cut(c.path, "/")
	if what != contentv1.JobContent {
		return notFound("a job has %s to get, not %q", contentv1.JobContent, what)
	}
	tree, err := c.server.Jobs.Content(w, job)
	if err != nil {
		return workFault(err)
	}
	if tree == nil {
		return notFound("the job has no content: it asks for parameters to be checked")
	}
	return c.sendTar(tree)
}

// readCluster reads for a job, as the service account of its instance.
func (c *call) readCluster() error {
	w, err := c.worker()
	if err != nil {
		return err
	}
	reader, err := c.server.Jobs.Reader(w, c.path)
	if err != nil {
		return workFault(err)
	}
	if reader == nil {
		return apierrors.NewBadRequest("nothing can be read for this job")
	}
	var asked contentv1.ReadRequest
	decoder := json.NewDecoder(io.LimitReader(c.r.Body, maxRead))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || asked.Version == "" || asked.Kind == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("what is read is {\"group\": ..., \"version\": ..., \"kind\": ..., \"namespace\": ..., \"name\": ...}, of which version and kind are needed (%v)", err))
	}
	answer, err := read(c.r.Context(), reader, asked)
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, answer)
	return nil
}

func read(ctx context.Context, reader provisioner.Reader, asked contentv1.ReadRequest) (answer contentv1.ReadAnswer, err error) {
	kind := schema.GroupVersionKind{Group: asked.Group, Version: asked.Version, Kind: asked.Kind}
	if asked.Name != "" {
		var found *unstructured.Unstructured
		if found, err = reader.Get(ctx, kind, types.NamespacedName{Namespace: asked.Namespace, Name: asked.Name}); err == nil {
			answer.Items = append(answer.Items, found)
		}
	} else {
		answer.Items, err = reader.List(ctx, kind, asked.Namespace)
	}
	// What the API server said of the object is for the provisioner. The status of the request itself is about the job.
	var said apierrors.APIStatus
	if errors.As(err, &said) {
		status := said.Status()
		return contentv1.ReadAnswer{Status: &status}, nil
	}
	return answer, err
}

// workFault gives errors of the broker their codes.
func workFault(err error) error {
	var (
		code     int32
		reason   metav1.StatusReason
		after    int32
		gone     *remote.GoneError
		own      *remote.OwnError
		busy     *remote.BusyError
		stopping *remote.StoppingError
		contract *remote.ContractError
	)
	switch {
	case errors.As(err, &gone):
		code, reason = http.StatusGone, metav1.StatusReasonGone
	case errors.As(err, &own):
		code, reason = http.StatusConflict, metav1.StatusReasonConflict
	case errors.As(err, &contract):
		code, reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	case errors.As(err, &busy):
		code, reason, after = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, comeAgain
	case errors.As(err, &stopping):
		code, reason, after = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 1
	default:
		return err
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: err.Error()}
	if after > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: after}
	}
	return &apierrors.StatusError{ErrStatus: status}
}
