// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

// call is one request that was let through.
type call struct {
	server *Server
	w      *countingWriter
	r      *http.Request
	info   *request.RequestInfo
	user   user.Info
	path   string // behind the subresource: of a file, or a job
}

// handlers by resource, subresource and verb.
func handlers() map[string]func(*call) error {
	return map[string]func(*call) error{
		"get bundles/files":                     (*call).files,
		"get bundles/archive":                   (*call).archive,
		"get instancerevisions/manifests":       (*call).manifests,
		"get instancerevisions/secretmanifests": (*call).secretManifests,
		"get instancerevisions/diff":            (*call).diff,
		"create uploads":                        (*call).upload,
		"create provisioners/work":              (*call).work,
		"get provisioners/work":                 (*call).workContent,
		"create provisioners/read":              (*call).readCluster,
	}
}

// ServeHTTP answers one request: who, may they, what.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, r = inMotion(w, r, stallTime)
	counted := &countingWriter{ResponseWriter: w}
	begun := time.Now()
	info, who, err := s.gate.pass(r)
	what := "discovery"
	if info != nil && info.IsResourceRequest {
		what = resourceOf(info)
		defer func() {
			if !waits(info) {
				s.Metrics.Served(knownOr(what, "other"), counted.status, time.Since(begun))
			}
		}()
	}
	if err == nil && !info.IsResourceRequest {
		err = discover(counted, r)
	} else if err == nil {
		err = s.call(counted, r, info, who, what)
	}
	if err != nil {
		counted.fail(err)
	}
}

func (s *Server) call(w *countingWriter, r *http.Request, info *request.RequestInfo, who user.Info, what string) error {
	handle, ok := handlers()[info.Verb+" "+what]
	if !ok || info.APIGroup != contentv1.GroupVersion.Group || info.APIVersion != contentv1.GroupVersion.Version || !inScope(info) {
		return unknown(info, what)
	}
	c := &call{server: s, w: w, r: r, info: info, user: who}
	if len(info.Parts) > 3 {
		c.path = strings.Join(info.Parts[3:], "/")
	}
	return handle(c)
}

// inScope tells whether a request names a namespace if, and only if, what it is about is in one.
func inScope(info *request.RequestInfo) bool {
	return (info.Namespace == "") == (info.Resource == contentv1.ResourceProvisioners)
}

// waits tells requests for work, which are held until there is some: how long that took says nothing.
func waits(info *request.RequestInfo) bool {
	return info.Resource == contentv1.ResourceProvisioners && len(info.Parts) == 3 && info.Verb == "create"
}

func resourceOf(info *request.RequestInfo) string {
	if info.Subresource == "" {
		return info.Resource
	}
	return info.Resource + "/" + info.Subresource
}

// knownOr keeps what users make up out of the labels of metrics.
func knownOr(what, other string) string {
	for known := range handlers() {
		if _, resource, _ := strings.Cut(known, " "); resource == what {
			return what
		}
	}
	return other
}

func unknown(info *request.RequestInfo, what string) error {
	if knownOr(what, "") != "" && inScope(info) {
		return apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: what}, info.Verb)
	}
	return notFound("there is no %s in %s; a bundle has files and archive, an instancerevision manifests, secretmanifests and diff, a provisioner work and read", what, contentv1.GroupVersion)
}

// notFound is a 404 with a text of our own.
func notFound(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf(format, args...),
	}}
}

// later is a 503 that says when to come again; clients of Kubernetes do so by
// themselves.
func later(seconds int32, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf(format, args...), Details: &metav1.StatusDetails{RetryAfterSeconds: seconds},
	}}
}

// countingWriter remembers what was answered.
type countingWriter struct {
	http.ResponseWriter
	status int
}

func (w *countingWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers with an error. Where an answer has begun already, it is cut off,
// so that nobody takes a part for the whole.
func (w *countingWriter) fail(err error) {
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	for _, name := range []string{"ETag", "Repr-Digest", "Content-Length", "Content-Disposition", "Accept-Ranges"} {
		w.Header().Del(name) // of what is not given after all
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // who does not want it has gone
}
