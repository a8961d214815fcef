// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/manifest"
)

// betweenTimes lets somebody act after an approval was given and before the manager knows of it.
func (a *tenant) betweenTimes(act func()) {
	a.t.Helper()
	env.StopManager(10 * time.Second)
	act()
	if err := env.StartManager(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// manifests are the bytes that a revision stands for.
func (a *tenant) manifests(of *v1alpha1.InstanceRevision) []byte {
	a.t.Helper()
	encoded, err := manifest.LoadVerified(a.t.Context(), a.client, of.Namespace, of.Name, digest.Digest(of.Spec.ManifestDigest))
	if err != nil {
		a.t.Fatal(err)
	}
	return encoded
}

// onlyApproved says that whatever revision wrote anything was approved by a person who named its very bytes.
func (a *tenant) onlyApproved() {
	a.t.Helper()
	var revisions v1alpha1.InstanceRevisionList
	var approvals v1alpha1.ApprovalList
	for _, list := range []client.ObjectList{&revisions, &approvals} {
		if err := a.client.List(a.t.Context(), list, client.InNamespace(a.namespace)); err != nil {
			a.t.Fatal(err)
		}
	}
	named := map[v1alpha1.Digest]bool{}
	for _, made := range approvals.Items {
		named[made.Spec.ManifestDigest] = named[made.Spec.ManifestDigest] || made.Spec.Decision == v1alpha1.DecisionApprove
	}
	for _, revision := range revisions.Items {
		if revision.Status.ActivatedAt != nil && !named[revision.Spec.ManifestDigest] {
			a.t.Errorf("%s was activated, and nobody named %s", revision.Name, revision.Spec.ManifestDigest)
		}
	}
}

// newest waits for a revision that is newer than one, and waits for its own approval.
func (a *tenant) newest(name string, after int64) *v1alpha1.InstanceRevision {
	a.t.Helper()
	a.eventually("a newer revision than "+fmt.Sprint(after), func(context.Context) error {
		if got := a.get(name).Status.LastRevision; got <= after {
			return fmt.Errorf("the last one is %d", got)
		}
		return nil
	})
	a.condition(name, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	return a.revision(fmt.Sprintf("%s-%d", name, a.get(name).Status.LastRevision))
}

// never looks whether a ConfigMap has a value that nobody approved.
func (a *tenant) never(name, evil string) {
	a.t.Helper()
	found := a.configMap(name)
	err := a.client.Get(a.t.Context(), client.ObjectKeyFromObject(found), found)
	if client.IgnoreNotFound(err) != nil {
		a.t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(found.Data), evil) {
		a.t.Errorf("ConfigMap %s has what nobody approved: %v", name, found.Data)
	}
}

func TestWhatIsEditedBetweenApprovalAndActivationIsNotCoveredByTheApproval(t *testing.T) {
	edits := map[string]func(a *tenant){
		"the instance": func(a *tenant) {
			ref := a.push("evil", map[string]string{"a.yaml": configMap("one", "evil")})
			a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
		},
		"its class": func(a *tenant) {
			lax := &v1alpha1.ProvisionerClass{
				ObjectMeta: metav1.ObjectMeta{Name: a.class + "-other"},
				Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io"},
			}
			a.create(lax)
			a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle.ProvisionerClassName = lax.Name })
		},
		"its service account": func(a *tenant) {
			a.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "other"}})
			a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.ServiceAccountName = "other" })
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			a := newTenant(t, v1alpha1.ApprovalManual)
			a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "good")}))
			a.planned("app-1")
			a.betweenTimes(func() {
				a.approve("app-1", v1alpha1.DecisionApprove)
				edit(a)
			})
			second := a.newest("app", 1)
			if second.Status.ActivatedAt != nil || len(second.Status.Decisions) > 0 {
				t.Errorf("%s was decided by %+v", second.Name, second.Status.Decisions)
			}
			a.never("one", "evil")
			a.onlyApproved()
		})
	}
}

func TestATagThatMovesBetweenApprovalAndActivationChangesNothing(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("stable", map[string]string{"a.yaml": configMap("one", "good")}))
	a.planned("app-1")
	a.betweenTimes(func() {
		a.approve("app-1", v1alpha1.DecisionApprove)
		a.push("stable", map[string]string{"a.yaml": configMap("one", "evil")})
		if err := env.LoseContent(); err != nil { // so that all is fetched anew
			t.Fatal(err)
		}
	})
	a.ready("app")
	a.value("one", "good")
	a.onlyApproved()
}

func TestManifestsThatAreSwappedAfterTheApprovalAreNotApplied(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "good")}))
	a.instance("bad", a.push("evil", map[string]string{"a.yaml": configMap("one", "evil")}))
	a.planned("app-1")
	a.planned("bad-1")
	revision := a.revision("app-1")
	a.betweenTimes(func() {
		a.approve("app-1", v1alpha1.DecisionApprove)
		// As who may do everything: nobody else can.
		if err := manifest.Save(t.Context(), a.client, revision, manifest.KindManifest, a.manifests(a.revision("bad-1"))); err != nil {
			t.Fatal(err)
		}
	})
	a.ready("app") // the same content is rendered again, and is what was approved
	a.value("one", "good")
	if got := a.revision("app-1").Spec.ManifestDigest; got != v1alpha1.Digest(manifest.DigestOf(a.manifests(revision))) {
		t.Errorf("app-1 has the digest %s", got)
	}
}

// A chart with a random text is a provisioner that renders other bytes each time; its values come from a ConfigMap.
func TestOtherBytesOfAnotherRenderingAndOtherValuesWaitForTheirOwnApproval(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.class = a.namespace + "-helm"
	a.create(&v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: a.class},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "helm.rukpak.io"},
	})
	values := a.configMap("values")
	values.Data = map[string]string{"values.yaml": "text: good"}
	a.create(values)
	ref := a.push("v1", map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: dice\nversion: 1.0.0\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  value: {{ .Values.text | quote }}\n  random: {{ randAlphaNum 20 | quote }}\n",
	})
	a.instance("app", ref, func(i *v1alpha1.BundleInstance) {
		i.Spec.ConfigFrom = []v1alpha1.ConfigReference{{Kind: "ConfigMap", Name: "values"}}
	})
	a.planned("app-1")
	first := a.revision("app-1")
	approved := string(a.manifests(first))
	a.betweenTimes(func() {
		a.approve("app-1", v1alpha1.DecisionApprove)
		if err := env.LoseContent(); err != nil {
			t.Fatal(err)
		}
	})
	a.ready("app")
	found := a.configMap("one")
	live := func() string {
		if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			t.Fatal(err)
		}
		return found.Data["random"]
	}
	if got := live(); got == "" || !strings.Contains(approved, got) {
		t.Errorf("what is active has %q, which is not in what was approved", got)
	}
	if got := a.get("app").Status.LastRevision; got != 1 {
		t.Errorf("%d revisions of the same content and values", got)
	}

	// With the manifests lost, all that can be rendered are other bytes: they are not what was approved.
	a.betweenTimes(func() {
		lost := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: manifest.SecretName("app-1", manifest.KindManifest, 0)}}
		if err := a.client.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
	})
	before := live()
	second := a.newest("app", 1)
	if second.Spec.ManifestDigest == first.Spec.ManifestDigest || second.Status.ActivatedAt != nil {
		t.Errorf("%s has the digest %s and was activated at %v", second.Name, second.Spec.ManifestDigest, second.Status.ActivatedAt)
	}
	if got := live(); got != before {
		t.Errorf("%q became %q without an approval", before, got)
	}

	a.betweenTimes(func() {
		a.approve(second.Name, v1alpha1.DecisionApprove)
		values.Data["values.yaml"] = "text: evil"
		if err := a.client.Update(t.Context(), values); err != nil {
			t.Fatal(err)
		}
	})
	a.newest("app", second.Spec.Number)
	a.never("one", "evil")
	a.onlyApproved()
}

func TestAClassThatIsDeletedAndMadeAgainDecidesAsItIsNow(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.planned("app-1")
	a.betweenTimes(func() {
		a.approve("app-1", v1alpha1.DecisionApprove)
		class := &v1alpha1.ProvisionerClass{ObjectMeta: metav1.ObjectMeta{Name: a.class}}
		if err := a.client.Delete(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		a.eventually("the class is made again, and wants more", func(ctx context.Context) error {
			again := &v1alpha1.ProvisionerClass{
				ObjectMeta: metav1.ObjectMeta{Name: a.class},
				Spec: v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io",
					Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalManual, RequiredApprovals: 2}},
			}
			return a.client.Create(ctx, again)
		})
	})
	a.eventually("one approval is too few now", func(context.Context) error {
		if got := a.message("app", v1alpha1.ConditionApproved); !strings.Contains(got, "1 of 2 approvals") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	if a.revision("app-1").Status.ActivatedAt != nil {
		t.Error("it was activated")
	}
}

// One edits well, one badly, at the same time, and a third approves as fast as can be what is good.
func TestRacingEditsMakeNothingActiveThatWasNotApproved(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	inline := func(value string) *v1alpha1.BundleSpec {
		return &v1alpha1.BundleSpec{ProvisionerClassName: a.class, Sources: []v1alpha1.BundleSource{
			{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a.yaml": configMap("one", value)}}}}}
	}
	a.instance("app", "", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = inline("good") })
	a.planned("app-1")

	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	edit := func(value string) {
		for i := 0; ctx.Err() == nil; i++ {
			now := &v1alpha1.BundleInstance{}
			if err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "app"}, now); err == nil {
				now.Spec.Bundle = inline(fmt.Sprintf("%s-%d", value, i))
				_ = a.client.Update(ctx, now) // who loses the race tries again
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	wait.Go(func() { edit("good") })
	wait.Go(func() { edit("evil") })
	approver, seen := a.user(), map[string]bool{}
	for begun := time.Now(); time.Since(begun) < 15*time.Second; time.Sleep(20 * time.Millisecond) {
		var list v1alpha1.InstanceRevisionList
		if err := a.client.List(t.Context(), &list, client.InNamespace(a.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, revision := range list.Items {
			if seen[revision.Name] || !meta.IsStatusConditionTrue(revision.Status.Conditions, v1alpha1.ConditionPlanned) {
				continue
			}
			seen[revision.Name] = true
			encoded, err := manifest.LoadVerified(t.Context(), a.client, a.namespace, revision.Name, digest.Digest(revision.Spec.ManifestDigest))
			if err != nil || !strings.Contains(string(encoded), "good") {
				continue // it may be forgotten by now
			}
			if err := a.client.Create(t.Context(), a.approval(revision.Name, v1alpha1.DecisionApprove, approver)); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		a.never("one", "evil")
	}
	stop()
	wait.Wait()
	if len(seen) < 4 {
		t.Errorf("only %d revisions raced", len(seen))
	}
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = inline("evil-last") })
	last := a.newest("app", a.get("app").Status.LastRevision-1)
	if last.Status.ActivatedAt != nil {
		t.Errorf("%s is active", last.Name)
	}
	a.never("one", "evil")
	a.onlyApproved()
}
