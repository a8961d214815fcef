// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSchemaOfProvisionerClass(t *testing.T) {
	class := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: ProvisionerClass, metadata: {name: %s}, spec: {%s}}", name, spec)
	}
	const provisioner = "provisioner: plain.rukpak.io"
	checkSchema(t, []schemaCase{
		{"the least", class("a", provisioner), ""},
		{"name of 63 characters", class(strings.Repeat("a", 63), provisioner), ""},
		{"name of 64 characters", class(strings.Repeat("a", 64), provisioner), "name must be at most 63 characters"},
		{"no provisioner", class("a", "reclaimPolicy: Delete"), "spec.provisioner: Required value"},
		{"provisioner that is no DNS name", class("a", "provisioner: plain"), "spec.provisioner in body should match"},
		{"provisioner with capitals", class("a", "provisioner: Plain.rukpak.io"), "spec.provisioner in body should match"},
		{"any parameters", class("a", provisioner+", parameters: {deep: {list: [1, x]}}"), ""},
		{"parameters that are no object", class("a", provisioner+", parameters: [1]"), "spec.parameters in body must be of type object"},
		{"unknown approval mode", class("a", provisioner+", approval: {mode: Never}"), `supported values: "Manual", "Automatic"`},
		{"unknown reclaim policy", class("a", provisioner+", reclaimPolicy: Recycle"), `supported values: "Delete", "Retain"`},
		{"empty default service account", class("a", provisioner+`, identity: {defaultServiceAccount: ""}`), "spec.identity.defaultServiceAccount"},
		{"unknown field", class("a", provisioner+", approvers: {}"), `unknown field "spec.approvers"`},
	})
}

func TestSchemaOfBundle(t *testing.T) {
	bundle := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: Bundle, metadata: {name: %s, namespace: default}, spec: {%s}}", name, spec)
	}
	checkSchema(t, []schemaCase{
		{"the least", bundle("a", sources), ""},
		{"name of 63 characters", bundle(strings.Repeat("a", 63), sources), ""},
		{"name of 64 characters", bundle(strings.Repeat("a", 64), sources), "name must be at most 63 characters"},
		{"no sources", bundle("a", "sources: []"), "spec.sources in body should have at least 1 items"},
		{"two sources", bundle("a", "sources: [{oci: {ref: a}}, {oci: {ref: b}}]"), ""},
		{"17 sources", bundle("a", "sources: ["+strings.Repeat("{oci: {ref: a}}, ", 17)+"]"), "Too many: 17: must have at most 16 items"},
		{"a path that leaves the content", bundle("a", "sources: [{path: ../up, oci: {ref: a}}]"), "spec.sources[0].path in body should match"},
		{"pins for other sources", bundle("a", "sources: [{oci: {ref: a}}], pins: []"), "pins must have one entry for each of sources"},
		{"source of no kind", bundle("a", "sources: [{}]"), "exactly one kind of source must be set: oci"},
		{"source of an unknown kind", bundle("a", "sources: [{svn: {}}]"), `unknown field "spec.sources[0].svn"`},
		{"empty reference", bundle("a", `sources: [{oci: {ref: ""}}]`), "spec.sources[0].oci.ref in body should be at least 1 chars long"},
		{"reference of 1025 characters", bundle("a", "sources: [{oci: {ref: "+strings.Repeat("a", 1025)+"}}]"), "may not be more than 1024"},
		{"the same pull secret twice", bundle("a", "sources: [{oci: {ref: a, pullSecrets: [{name: s}, {name: s}]}}]"), "Duplicate value"},
	})
}

func TestSchemaOfBundleInstance(t *testing.T) {
	instance := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: BundleInstance, metadata: {name: %s, namespace: default}, spec: {%s}}", name, spec)
	}
	with := func(more string) string { return instance("a", reference("b")+", "+more) }
	checkSchema(t, []schemaCase{
		{"reference", instance("a", reference("b")), ""},
		{"template", instance("a", template("")), ""},
		{"neither", instance("a", "suspend: true"), "exactly one of bundle and bundleRef must be set"},
		{"both", instance("a", reference("b")+", "+template("")), "exactly one of bundle and bundleRef must be set"},
		{"name of 52 characters", instance(strings.Repeat("a", 52), reference("b")), ""},
		{"name of 53 characters", instance(strings.Repeat("a", 53), reference("b")), "name must be at most 52 characters: the names of bundles and revisions are derived from it"},
		{"any configuration", with("config: {deep: {list: [1, x]}}"), ""},
		{"configuration that is no object", with("config: text"), "spec.config in body must be of type object"},
		{"empty service account", with(`serviceAccountName: ""`), "spec.serviceAccountName"},
		{"deadline of 1s", with("strategy: {progressDeadline: 1s}"), ""},
		{"deadline of 24h", with("strategy: {progressDeadline: 24h}"), ""},
		{"deadline below 1s", with("strategy: {progressDeadline: 999ms}"), "progressDeadline must be between 1s and 24h"},
		{"deadline over 24h", with("strategy: {progressDeadline: 24h1s}"), "progressDeadline must be between 1s and 24h"},
		{"deadline that is no duration", with("strategy: {progressDeadline: ten minutes}"), "spec.strategy.progressDeadline"},
		{"deadline that is empty", with(`strategy: {progressDeadline: ""}`), "spec.strategy.progressDeadline"},
		{"unknown adoption", with("strategy: {adoption: Always}"), `supported values: "Never", "Unowned", "Force"`},
		{"following", instance("a", template("")+", track: {interval: 10s, semver: '^1.2.0'}"), ""},
		{"following too often", instance("a", template("")+", track: {interval: 9s}"), "interval must be between 10s and 720h"},
		{"following the empty range", instance("a", template("")+", track: {interval: 1m, semver: ''}"), "track.semver in body should be at least 1 chars long"},
		{"following a reference", with("track: {interval: 1m}"), "track follows the sources of a template: set bundle, not bundleRef"},
		{"dependencies", with("dependsOn: [{name: b}, {name: c}]"), ""},
		{"a dependency on itself", with("dependsOn: [{name: b}, {name: a}]"), "an instance cannot depend on itself"},
		{"a dependency twice", with("dependsOn: [{name: b}, {name: b}]"), "Duplicate value"},
		{"no dependency", with("dependsOn: []"), "spec.dependsOn in body should have at least 1 items"},
		{"rollback to nothing", with("rollbackTo: 0"), "spec.rollbackTo in body should be greater than or equal to 1"},
		{"history below 0", with("revisionHistoryLimit: -1"), "should be greater than or equal to 0"},
		{"history over 100", with("revisionHistoryLimit: 101"), "should be less than or equal to 100"},
	})
}

func TestSchemaOfInstanceRevisionAndApproval(t *testing.T) {
	revision := revisionYAML("default", "app-1")
	approval := approvalYAML("default", "admin", "any")
	change := strings.Replace
	checkSchema(t, []schemaCase{
		{"revision", revision, ""},
		{"revision number 0", change(revision, "number: 1", "number: 0", 1), "spec.number in body should be greater than or equal to 1"},
		{"revision with a digest cut short", change(revision, zeros, "sha256:00", 1), "should match '^sha256:[a-f0-9]{64}$'"},
		{"revision with a tag for a digest", change(revision, zeros, "v1.0.0", 1), "should match"},
		{"revision with another algorithm", change(revision, zeros, "sha512:"+strings.Repeat("0", 64), 1), "should match"},
		{"revision with capitals in a digest", change(revision, zeros, "sha256:"+strings.Repeat("A", 64), 1), "should match"},
		{"revision name of 64 characters", change(revision, "app-1", strings.Repeat("a", 64), 1), "name must be at most 63 characters"},
		{"revision of an unknown adoption", change(revision, "adoption: Never", "adoption: Perhaps", 1), "supported values"},
		{"approval", approval, ""},
		{"approval of a tag", change(approval, zeros, "v1.0.0", 1), "spec.manifestDigest in body should match"},
		{"approval that decides nothing", change(approval, "decision: Approve", "decision: Abstain", 1), `supported values: "Approve", "Deny"`},
		{"approval without an approver", change(approval, `approver: "admin"`, `approver: ""`, 1), "spec.approver"},
		{"approval by a user with a long name", change(approval, `approver: "admin"`, `approver: "`+strings.Repeat("u", 1024)+`"`, 1), "but you are"},
		{"approval with a long message", change(approval, "decision: Approve", "decision: Approve, message: "+strings.Repeat("m", 1025), 1), "may not be more than 1024"},
	})
}

func TestDefaultsAreWrittenIntoTheSpec(t *testing.T) {
	env := cluster.Env(t)
	admin := adminClient(t, env)
	for _, test := range []struct {
		name, object, field string
		want                any
	}{
		{"instance: strategy", instanceYAML("default", reference("b")), "strategy", map[string]any{"progressDeadline": "10m", "adoption": "Never", "onFailure": "Hold", "prune": true}},
		{"instance: history", instanceYAML("default", reference("b")), "revisionHistoryLimit", int64(10)},
		{"class: approval", classYAML("a", false, ""), "approval", map[string]any{"mode": "Manual"}},
		{"class: reclaim policy", classYAML("a", false, ""), "reclaimPolicy", "Delete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := object(test.object)
			if err := admin.Create(t.Context(), made, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", test.field)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatMustNotChangeCannotBeChanged(t *testing.T) {
	env := cluster.Env(t)
	admin, namespace := adminClient(t, env), env.NewNamespace(t)
	class := mustCreate(t, env, classYAML("fixed", false, ""))
	bundle := mustCreate(t, env, bundleYAML(namespace, ""))
	expect(t, "provisioner cannot be changed; create another class", dryPatch(admin, class, "", `{"spec":{"provisioner":"helm.rukpak.io"}}`))
	expect(t, "", dryPatch(admin, class, "", `{"spec":{"approval":{"mode":"Automatic"},"parameters":{"a":1}}}`))
	expect(t, "a Bundle's spec cannot be changed; create another Bundle", dryPatch(admin, bundle, "", `{"spec":{"provisionerClassName":"fixed"}}`))
	expect(t, "a Bundle's spec cannot be changed; create another Bundle", dryPatch(admin, bundle, "", `{"spec":{"sources":[{"oci":{"ref":"other"}}]}}`))
	expect(t, "", dryPatch(admin, bundle, "", `{"metadata":{"labels":{"a":"b"}}}`))
}

type schemaCase struct{ name, object, want string }

// checkSchema creates each object as administrator, in a dry run that is strict about fields, as kubectl is.
func checkSchema(t *testing.T, cases []schemaCase) {
	t.Helper()
	env := cluster.Env(t)
	strict := client.WithFieldValidation(adminClient(t, env), "Strict")
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			err := strict.Create(t.Context(), object(test.object), client.DryRunAll)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
