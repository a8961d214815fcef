// SPDX-License-Identifier: Apache-2.0

package imgpkg

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/testenv/golden"
	"rukpak.io/rukpak/internal/testenv/realinput"
	"rukpak.io/rukpak/provisioner"
	"rukpak.io/rukpak/provisioner/provisionertest"
)

const digest = "@sha256:4c8b96d4fffdfae29258d94a22ae4ad1fe36139d47288b8960d9958d1e63a9d0"

func request(content fs.FS, parameters, config string) provisioner.Request {
	req := provisioner.Request{Instance: types.NamespacedName{Namespace: "prod", Name: "subject"}, Content: content}
	if parameters != "" {
		req.Parameters = []byte(parameters)
	}
	if config != "" {
		req.Config = []byte(config)
	}
	return req
}

func TestConformance(t *testing.T) {
	subject := provisionertest.Subject{Provisioner: New()}
	var small fstest.MapFS
	for _, one := range golden.Archives(t) {
		if !strings.HasPrefix(one.Want, "error") {
			small = one.Content
			subject.Good = append(subject.Good, provisionertest.Case{Name: one.Name, Content: one.Content, Config: []byte(one.Config)})
		}
	}
	with := func(name, text string) fstest.MapFS {
		changed := maps.Clone(small)
		changed[name] = &fstest.MapFile{Data: []byte(text)}
		return changed
	}
	const lock = ".imgpkg/images.yml"
	const head = "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\n"
	subject.Bad = []provisionertest.Case{
		{Name: "Template", Content: with("t.yml", "#@ load(\"@ytt:data\", \"data\")\n---\na: #@ data.values.a\n"), File: "t.yml"},
		{Name: "TemplateInLine", Content: with("t.yml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: #@ data.values.a\n"), File: "t.yml"},
		{Name: "LockVersion", Content: with(lock, "apiVersion: imgpkg.carvel.dev/v1\nkind: ImagesLock\n"), File: lock},
		{Name: "LockField", Content: with(lock, head+"image: []\n"), File: lock},
		{Name: "LockTag", Content: with(lock, head+"images: [{image: \"nginx:1\"}]\n"), File: lock},
		{Name: "LockID", Content: with(lock, head+"images: [{image: nginx"+digest+", annotations: {kbld.carvel.dev/id: [1]}}]\n"), File: lock},
		{Name: "LockTwice", Content: with(lock, head+"images: [{image: a/x"+digest+", annotations: {kbld.carvel.dev/id: n}}, {image: a/y"+strings.Replace(digest, "4c", "5c", 1)+", annotations: {kbld.carvel.dev/id: n}}]\n"), File: lock},
		{Name: "TwoLocks", Content: with("sub/.imgpkg/images.yml", head), File: "sub/.imgpkg"},
		{Name: "Description", Content: with(".imgpkg/bundle.yml", "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: Bundel\n"), File: ".imgpkg/bundle.yml"},
		{Name: "NoLock", Content: fstest.MapFS{".imgpkg/bundle.yml": {}, "a.yml": {Data: []byte("a: b")}}, File: lock},
		{Name: "NoBundle", Content: fstest.MapFS{"a.yml": {Data: []byte("a: b")}}, Whole: true},
		{Name: "Relocated", Content: small, Parameters: []byte(`{"images": "Relocated"}`), File: "config"},
		{Name: "Repository", Content: small, Parameters: []byte(`{"repository": "A B"}`), File: "parameters"},
		{Name: "Parameters", Content: small, Parameters: []byte(`{"images": "relocated"}`), File: "parameters"},
		{Name: "Config", Content: small, Config: []byte(`{"image": "a"}`), File: "config"},
	}
	provisionertest.Run(t, subject)
}

// TestRelocatedBundleIsFoundByItsOrigin takes the repository from where the content came from.
func TestRelocatedBundleIsFoundByItsOrigin(t *testing.T) {
	content := fstest.MapFS{
		"app/.imgpkg/images.yml": {Data: []byte("apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages: [{image: nginx" + digest + ", annotations: {kbld.carvel.dev/id: \"nginx:1\"}}]\n")},
		"app/pod.yml":            {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: \"nginx:1\"}]}\n")},
	}
	root := provisioner.Origin{Kind: "oci", Ref: "registry.example/root" + digest}
	app := provisioner.Origin{Path: "app", Kind: "oci", Ref: "mirror.example:5000/apps/web" + digest}
	for name, test := range map[string]struct {
		origins []provisioner.Origin
		want    string
	}{
		"Nearest":   {[]provisioner.Origin{root, app, {Path: "other", Kind: "oci", Ref: "x.example/y" + digest}}, "mirror.example:5000/apps/web" + digest},
		"Root":      {[]provisioner.Origin{{Path: "app", Kind: "git", Ref: "https://example.com/x"}, root}, "registry.example/root" + digest},
		"NoImage":   {[]provisioner.Origin{{Kind: "git", Ref: "https://example.com/x"}}, ""},
		"Elsewhere": {[]provisioner.Origin{{Path: "ap", Kind: "oci", Ref: "x.example/y" + digest}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(content, `{"images": "Relocated"}`, "")
			req.Origins = test.origins
			result, err := New().Render(t.Context(), req)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "the repository of the bundle is not known: set repository") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := imagesOf(result); got != "["+test.want+"]" {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func imagesOf(result provisioner.Result) string {
	var images []any
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			spec := object.Object
			if template, found, _ := unstructured.NestedMap(spec, "spec", "template"); found {
				spec = template
			}
			containers, _, _ := unstructured.NestedSlice(spec, "spec", "containers")
			for _, container := range containers {
				images = append(images, container.(map[string]any)["image"])
			}
		}
	}
	return fmt.Sprint(images)
}

// TestRealBundles renders what Carvel publishes as examples.
func TestRealBundles(t *testing.T) {
	root := realinput.Path(t, "carvel/imgpkg-examples/head")
	result, err := New().Render(t.Context(), request(os.DirFS(filepath.Join(root, "basic-step-2")), "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := imagesOf(result), "[index.docker.io/dkalinin/k8s-simple-app@sha256:4c8b96d4fffdfae29258d94a22ae4ad1fe36139d47288b8960d9958d1e63a9d0]"; got != want {
		t.Errorf("images %s, want %s", got, want)
	}
	if result.Notes != "" {
		t.Errorf("notes %q", result.Notes)
	}
	if _, err := New().Render(t.Context(), request(os.DirFS(filepath.Join(root, "basic-step-1")), "", "")); err == nil || !strings.Contains(err.Error(), "there is no folder .imgpkg") {
		t.Errorf("without a lock: %v", err)
	}
}

// TestCommentsOfYttAreNoTemplate: only instructions are.
func TestCommentsOfYttAreNoTemplate(t *testing.T) {
	for text, want := range map[string]int{
		"#! a comment of ytt\na: b\n": 0, "a: b # c@d\n": 0, "a: |\n  #@ text\nb: c\n": 0, "a: \"x #@ y\"\n": 0,
		"#@ def a():\n": 1, "a: b\n#@overlay/match by=\"x\"\n": 2, "a: #@ data\n": 1, "a: |\n  #@ text\nb: #@ c\n": 3, "#@ if x:\n- a: [\n": 1,
	} {
		if got := templateLine([]byte(text)); got != want {
			t.Errorf("%q: line %d, want %d", text, got, want)
		}
	}
}

// FuzzBundle looks for panics, and for results that differ from run to run.
func FuzzBundle(f *testing.F) {
	for _, one := range golden.Archives(f) {
		config := one.Content["config/app.yml"]
		if config == nil {
			config = one.Content["kbld.yml"]
		}
		if config != nil {
			f.Add(one.Content[".imgpkg/images.yml"].Data, config.Data, one.Config)
		}
	}
	f.Fuzz(func(t *testing.T, lock, text []byte, config string) {
		one := golden.Archive{Content: fstest.MapFS{".imgpkg/images.yml": {Data: lock}, "a.yml": {Data: text}}, Config: config}
		if first, second := outcome(t, one), outcome(t, one); first != second {
			t.Errorf("first %s\nthen %s", first, second)
		}
	})
}

func TestOriginsMatterWhereNothingElseNamesTheRepository(t *testing.T) {
	for name, test := range map[string]struct {
		parameters, config string
		want               bool
	}{
		"by default":           {"", "", false},
		"relocated":            {`{"images": "Relocated"}`, "", true},
		"relocated by config":  {"", `{"images": "Relocated"}`, true},
		"to a repository":      {`{"images": "Relocated", "repository": "a.example/b"}`, "", false},
		"config says where to": {`{"images": "Relocated"}`, `{"repository": "a.example/b"}`, false},
		"not valid":            {`{"images": 1}`, "", false},
	} {
		if got := New().UsesOrigins([]byte(test.parameters), []byte(test.config)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
