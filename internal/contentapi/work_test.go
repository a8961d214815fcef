// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	readas "rukpak.io/rukpak/internal/cluster"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/provisioner"
)

func workPath(id, rest string) string {
	return "/apis/content.rukpak.io/v1alpha1/provisioners/" + id + "/" + rest
}

// worker is a user who may serve one ID.
func (h *harness) worker(t *testing.T, id string, resources ...string) *rest.Config {
	t.Helper()
	user := "worker-of-" + id
	name := "serves-" + id
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"content.rukpak.io"}, Resources: append([]string{"provisioners/work"}, resources...), ResourceNames: []string{id}, Verbs: []string{"create", "get"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		},
	} {
		if err := h.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	config := h.env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	h.eventually(t, as{user: user, method: http.MethodPost}, workPath(id, "work?wait=0"), http.StatusNoContent)
	return config
}

// dumper is a provisioner of a stranger: it tells in a ConfigMap what it was given.
type dumper struct{ id string }

func (d dumper) ID() string { return d.id }

func (dumper) Validate(_ context.Context, _ fs.FS, parameters json.RawMessage) error {
	if strings.Contains(string(parameters), "bad") {
		return &provisioner.InputError{File: "parameters", Line: 2, Reason: "bad is not taken"}
	}
	return nil
}

func (d dumper) Render(ctx context.Context, req provisioner.Request) (result provisioner.Result, err error) {
	origins, _ := json.Marshal(req.Origins) // plain strings
	data := map[string]any{"origins": string(origins), "config": string(req.Config), "version": req.Cluster.Version, "revision": fmt.Sprint(req.Revision)}
	switch {
	case strings.Contains(string(req.Config), "panic"):
		panic("I had not thought of that")
	case strings.Contains(string(req.Config), "unnamed"):
		return provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: []*unstructured.Unstructured{{Object: map[string]any{"kind": "A", "apiVersion": "v1"}}}}}}, nil
	case strings.Contains(string(req.Config), "read"):
		found, err := req.Reader.Get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, types.NamespacedName{Namespace: req.Instance.Namespace, Name: "facts"})
		if err != nil {
			return result, err
		}
		data["read"], _, _ = unstructured.NestedString(found.Object, "data", "n")
		_, err = req.Reader.Get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, types.NamespacedName{Namespace: req.Instance.Namespace, Name: "absent"})
		data["absent"] = fmt.Sprint(apierrors.IsNotFound(err))
		_, err = req.Reader.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, req.Instance.Namespace)
		data["forbidden"] = fmt.Sprint(apierrors.IsForbidden(err))
	}
	err = fs.WalkDir(req.Content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := fs.ReadFile(req.Content, name)
		data[strings.ReplaceAll(name, "/", ".")] = fmt.Sprintf("%t %t %s", info.Mode()&0o100 != 0, info.Mode()&fs.ModeSymlink != 0, text)
		return err
	})
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dump"}, "data": data}
	return provisioner.Result{Phases: []provisioner.Phase{{Name: "all", Objects: []*unstructured.Unstructured{{Object: object}}}}, Notes: "as told"}, err
}

// answered asks until there is an answer.
func answered(t *testing.T, ask func() error) error {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := ask()
		if !errors.As(err, new(*remote.PendingError)) || time.Now().After(end) {
			return err
		}
	}
}

func (h *harness) rendered(t *testing.T, id string, req provisioner.Request) (result provisioner.Result, err error) {
	t.Helper()
	err = answered(t, func() error {
		result, err = h.jobs.Provisioner(id).Render(t.Context(), req)
		return err
	})
	return result, err
}

// A provisioner in a process of its own, as far as it can tell: it has nothing but a login at the API server.
func TestAProvisionerServesThroughTheAPIServer(t *testing.T) {
	h := start(t)
	const id = "dumper.example.com"
	namespace := h.env.NewNamespace(t)
	config := h.worker(t, id, "provisioners/read")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- provisioner.Serve(ctx, config, dumper{id}, provisioner.ServeOptions{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	}()
	content, err := h.store.Open(t.Context(), h.put(t, map[string]string{"a.txt": "A", "bin/run*": "R", "l -> bin/run": "", "root -> /a.txt": ""}).Digest)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "facts"}, Data: map[string]string{"n": "41"}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "facts"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "facts"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "facts"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader-of-" + namespace}},
		},
	} {
		if err := h.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	account := h.env.Config()
	account.Impersonate = rest.ImpersonationConfig{UserName: "reader-of-" + namespace}
	reader, err := client.New(account, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	request := func(name, config string) provisioner.Request {
		return provisioner.Request{
			Instance: types.NamespacedName{Namespace: namespace, Name: name}, Content: content, Config: json.RawMessage(config), Revision: 7,
			Origins: []provisioner.Origin{{Kind: "oci", Ref: "registry.example/app@sha256:0"}, {Path: "over", Kind: "inline", Ref: "sha256:1"}},
			Cluster: provisioner.Cluster{Version: "v1.99.0", APIs: []string{"v1"}}, Reader: readas.Reader(reader),
		}
	}

	result, err := h.rendered(t, id, request("good", `{"read":true}`))
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(result.Phases[0].Objects[0].Object, "data")
	for key, want := range map[string]string{
		"origins": `[{"Path":"","Kind":"oci","Ref":"registry.example/app@sha256:0"},{"Path":"over","Kind":"inline","Ref":"sha256:1"}]`,
		"config":  `{"read":true}`, "version": "v1.99.0", "revision": "7", "read": "41", "absent": "true", "forbidden": "true",
		"a.txt": "false false A", "bin.run": "true false R", "l": "true R", "root": "true A",
	} {
		if got := data[key]; got != want && !(strings.HasPrefix(want, "true ") && strings.HasSuffix(got, want)) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if result.Notes != "as told" {
		t.Errorf("notes %q", result.Notes)
	}
	if _, err := h.rendered(t, id, request("panics", `{"panic":1}`)); err == nil || !strings.Contains(err.Error(), "panic: I had not thought of that") {
		t.Errorf("a panic gives %v", err)
	}
	if _, err := h.rendered(t, id, request("breaks", `{"unnamed":1}`)); err == nil || provisioner.IsInputError(err) || !strings.Contains(err.Error(), "breaks the contract") {
		t.Errorf("a result that breaks the contract gives %v", err)
	}
	validate := func(parameters string) error {
		return answered(t, func() error { return h.jobs.Provisioner(id).Validate(t.Context(), nil, json.RawMessage(parameters)) })
	}
	if err := validate(`{"good":1}`); err != nil {
		t.Errorf("good parameters: %v", err)
	}
	if err := validate(`{"bad":1}`); !provisioner.IsInputError(err) || err.Error() != "parameters:2: bad is not taken" {
		t.Errorf("bad parameters: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatTheManagerServesItselfIsNotTakenOver(t *testing.T) {
	h := start(t)
	err := provisioner.Serve(t.Context(), h.env.Config(), dumper{"plain.rukpak.io"}, provisioner.ServeOptions{Dir: t.TempDir()})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "give yours an ID") {
		t.Errorf("got %v", err)
	}
}

// The protocol, as one speaks it who means no good.
func TestOnlyWhoTookAJobWorksOnIt(t *testing.T) {
	h := start(t)
	const id, other = "protocol.example.com", "other.example.com"
	h.worker(t, id)
	h.worker(t, other)
	owner, eve := as{user: "worker-of-" + id, method: http.MethodPost}, as{user: "worker-of-" + other, method: http.MethodPost}
	content, err := h.store.Open(t.Context(), h.put(t, sample).Digest)
	if err != nil {
		t.Fatal(err)
	}
	req := provisioner.Request{Instance: types.NamespacedName{Namespace: "team", Name: "web"}, Content: content}
	job := func() contentv1.Job {
		t.Helper()
		if _, err := h.jobs.Provisioner(id).Render(t.Context(), req); !errors.As(err, new(*remote.PendingError)) {
			t.Fatal(err)
		}
		got := h.ask(t, owner, workPath(id, "work?wait=5"))
		var job contentv1.Job
		if err := json.Unmarshal(got.body, &job); err != nil || job.Kind != contentv1.JobRender || job.ID == "" {
			t.Fatalf("%d, %s: %v", got.status, got.body, err)
		}
		return job
	}
	first := job()
	get := func(who as) as { who.method = http.MethodGet; return who }
	send := func(who as, body string) as { who.body = strings.NewReader(body); return who }
	const good = `{"nothing": true}`
	for name, test := range map[string]struct {
		who    as
		path   string
		status int
		text   string
	}{
		"work of another ID":                     {eve, workPath(id, "work?wait=0"), http.StatusForbidden, "forbidden"},
		"content of another ID":                  {get(eve), workPath(id, "work/"+first.ID+"/content"), http.StatusForbidden, ""},
		"content by way of one's own":            {get(eve), workPath(other, "work/"+first.ID+"/content"), http.StatusGone, "not yours"},
		"result by way of one's own":             {send(eve, good), workPath(other, "work/"+first.ID+"/result"), http.StatusGone, "not yours"},
		"the administrator, who did not take it": {send(as{method: http.MethodPost}, good), workPath(id, "work/"+first.ID+"/result"), http.StatusGone, "not yours"},
		"reading without the right":              {send(owner, `{"version": "v1", "kind": "Secret"}`), workPath(id, "read/"+first.ID), http.StatusForbidden, ""},
		"reading where nothing is":               {send(as{method: http.MethodPost}, `{"version": "v1", "kind": "Secret"}`), workPath(id, "read/"+first.ID), http.StatusGone, ""},
		"another job":                            {send(owner, good), workPath(id, "work/AAAA/result"), http.StatusGone, "not yours"},
		"another action":                         {send(owner, good), workPath(id, "work/"+first.ID+"/stop"), http.StatusNotFound, "renew and result"},
		"a long wait":                            {owner, workPath(id, "work?wait=3600"), http.StatusBadRequest, "from 0 to 50"},
		"in a namespace":                         {owner, "/apis/content.rukpak.io/v1alpha1/namespaces/default/provisioners/" + id + "/work", http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) { want(t, h.ask(t, test.who, test.path), test.status, test.text) })
	}
	got := h.ask(t, get(owner), workPath(id, "work/"+first.ID+"/content"))
	want(t, got, http.StatusOK, "# Sample")
	want(t, h.ask(t, owner, workPath(id, "work/"+first.ID+"/renew")), http.StatusNoContent, "")
	want(t, h.ask(t, send(owner, `{"phases": 5}`), workPath(id, "work/"+first.ID+"/result")), http.StatusUnprocessableEntity, "no result in JSON")
	want(t, h.ask(t, send(owner, good), workPath(id, "work/"+first.ID+"/result")), http.StatusGone, "")

	req.Instance.Name = "large"
	second := job()
	large := send(owner, `{"notes": "`+strings.Repeat("a", remote.MaxResult)+`"}`)
	want(t, h.ask(t, large, workPath(id, "work/"+second.ID+"/result")), http.StatusUnprocessableEntity, "larger than 32 MiB")
	if _, err := h.rendered(t, id, req); err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("the instance is told %v", err)
	}
	req.Instance.Name = "good"
	third := job()
	want(t, h.ask(t, send(owner, good), workPath(id, "work/"+third.ID+"/result")), http.StatusNoContent, "")
	if result, err := h.rendered(t, id, req); err != nil || !result.Nothing {
		t.Errorf("got %+v, %v", result, err)
	}
}
