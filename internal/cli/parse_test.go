// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestKindsGoByAllTheirNames(t *testing.T) {
	for word, want := range map[string]string{
		"instance": "instance", "instances": "instance", "bi": "instance", "BundleInstance": "instance", "bundleinstances.rukpak.io": "instance",
		"irev": "revision", "bun": "bundle", "appr": "approval", "pclass": "class", "classes": "class", "pods": "", "": "",
	} {
		if found, _ := kindOf(word); found.name != want {
			t.Errorf("kindOf(%q) = %q, not %q", word, found.name, want)
		}
	}
}

func TestNameOfAnInstanceFollowsFromItsContent(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for what, want := range map[string]string{
		"registry.example.com/team/web:v1":                        "web",
		"localhost:5000/web":                                      "web",
		"localhost:5000/web@sha256:0123":                          "web",
		"r/My_App.Base:v1":                                        "my-app-base",
		"r/a23456789012345678901234567890123456789012345678901-4": "a23456789012345678901234567890123456789012345678901",
		"r/___": "",
	} {
		if got := nameFrom(what); got != want {
			t.Errorf("nameFrom(%q) = %q, not %q", what, got, want)
		}
	}
	if got := nameFrom("."); got == "" {
		t.Error("the current folder has no name")
	}
}

func TestNumbersInNamesSortByValue(t *testing.T) {
	names := []string{"web-10", "web-9", "api", "web-1", "web-x"}
	var objects []client.Object
	for _, name := range names {
		object := &v1alpha1.InstanceRevision{}
		object.Name = name
		objects = append(objects, object)
	}
	slices.SortFunc(objects, byNamespaceAndName)
	var got []string
	for _, object := range objects {
		got = append(got, object.GetName())
	}
	if diff := cmp.Diff([]string{"api", "web-1", "web-9", "web-10", "web-x"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestSizesHaveUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1536: "1.5KiB", 1 << 20: "1MiB", 300 << 20: "300MiB", 5 << 30: "5GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, not %q", n, got, want)
		}
	}
}

func TestRollbackGoesToWhatWasActiveAndDiffers(t *testing.T) {
	one, two, three, four := revision(1, activated()), revision(2), revision(3, activated()), revision(4, activated())
	four.Spec.ManifestDigest = three.Spec.ManifestDigest
	all := []v1alpha1.InstanceRevision{*one, *two, *three, *four}
	s := &session{program: "rukpak", flags: genericclioptions.NewConfigFlags(false)}
	shown := instance(func(i *v1alpha1.BundleInstance) { i.Status.Active = reference(four) })
	got, err := previous(s, shown, all)
	if err != nil || got != 1 {
		t.Errorf("from 4 back to %d, %v; not 1: 2 was never active, 3 is the same", got, err)
	}
	shown.Status.Active = reference(one)
	if _, err := previous(s, shown, all); codeOf(err) != ExitNotFound {
		t.Errorf("from 1: %v", err)
	}
	shown.Status.Active = nil
	if _, err := previous(s, shown, all); codeOf(err) != ExitNotFound {
		t.Errorf("from nothing: %v", err)
	}
}

func TestProgramCallsItselfAsItWasCalled(t *testing.T) {
	for path, want := range map[string]string{
		"rukpak": "rukpak", "/usr/bin/rukpak.exe": "rukpak", "kubectl-rukpak": "kubectl rukpak", "/a/kubectl-rukpak.exe": "kubectl rukpak", "renamed": "rukpak",
	} {
		if got := programName(path); got != want {
			t.Errorf("programName(%q) = %q, not %q", path, got, want)
		}
	}
}

func TestPoliciesSpeakForThemselves(t *testing.T) {
	text := "ValidatingAdmissionPolicy 'approvals.rukpak.io' with binding 'approvals.rukpak.io' denied request: user \"jane\" may not approve"
	err := apierrors.NewForbidden(schema.GroupResource{Group: "rukpak.io", Resource: "approvals"}, "x", errors.New(text))
	if got := policyDenied(err); got != "user \"jane\" may not approve" {
		t.Errorf("policyDenied = %q", got)
	}
	if got := policyDenied(apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))); got != "" {
		t.Errorf("an ordinary refusal: %q", got)
	}
}

func TestNextCommandNamesTheSameNamespaceAndCluster(t *testing.T) {
	s := &session{program: "kubectl rukpak", flags: genericclioptions.NewConfigFlags(false)}
	if got := s.command("plan %s", "web"); got != `"kubectl rukpak plan web"` {
		t.Error(got)
	}
	*s.flags.Namespace, *s.flags.Context = "team", "prod"
	if got := s.command("plan %s", "web"); got != `"kubectl rukpak plan web -n team --context prod"` {
		t.Error(got)
	}
	if got := s.command("get instances -A"); got != `"kubectl rukpak get instances -A --context prod"` {
		t.Error(got)
	}
}
