// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
)

func TestImmutableFieldIsNamedAndRecreatedOnlyOnRequest(t *testing.T) {
	t.Parallel()
	job := parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {restartPolicy: Never,
 containers: [{name: main, image: example.com/a}]}}}}`)
	binding := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: []}`)
	fixed := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, immutable: true, data: {a: b}}`)
	secret := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: x}, type: example.com/a, stringData: {a: b}}`)
	tests := map[string]struct {
		old, now *unstructured.Unstructured
		fields   []string
	}{
		"DeploymentSelector": {
			old:    deployment(t, "x"),
			now:    withLabel(deployment(t, "x"), "v", "2"),
			fields: []string{"spec.selector"},
		},
		"ServiceClusterIP": {
			old: service(t, "x"), now: set(service(t, "x"), "None", "spec", "clusterIP"),
			fields: []string{"spec.clusterIPs[0]"},
		},
		"JobTemplate": {
			old: job, now: set(job, "OnFailure", "spec", "template", "spec", "restartPolicy"), fields: []string{"spec.template"},
		},
		"RoleRef":    {old: binding, now: set(binding, "b", "roleRef", "name"), fields: []string{"roleRef"}},
		"ConfigMap":  {old: fixed, now: set(fixed, "c", "data", "a"), fields: []string{"data"}},
		"SecretType": {old: secret, now: set(secret, "example.com/b", "type"), fields: []string{"type"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.mustApply(test.old)
			s.earlier(test.old)
			uid := s.live(test.old).GetUID()
			result := s.apply(test.now)
			got := only(t, result)
			if got.Err == nil || got.Err.Reason != activate.ImmutableField {
				t.Fatalf("got %s", result)
			}
			if diff := cmp.Diff(test.fields, got.Err.Fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			for _, want := range []string{s.namespace + "/x", test.fields[0], "spec.strategy.recreateImmutable"} {
				if !strings.Contains(got.Err.Error(), want) {
					t.Errorf("message lacks %q: %s", want, got.Err)
				}
			}
			if s.live(test.old).GetUID() != uid {
				t.Fatal("recreated without being asked to")
			}
			s.options.RecreateImmutable = true
			if got := only(t, s.mustApply(test.now)); got.Action != activate.Recreated || s.live(test.now).GetUID() == uid {
				t.Errorf("got %s", got)
			}
			if again := s.mustApply(test.now); again.Writes != 0 {
				t.Errorf("again: %s", again)
			}
		})
	}
}

func withLabel(object *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	out := set(object, value, "spec", "selector", "matchLabels", key)
	return set(out, value, "spec", "template", "metadata", "labels", key)
}

func TestRecreationWaitsForFinalizersAcrossCalls(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}, Patience: 1})
	fixed := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, immutable: true, data: {a: b}}`)
	changed := set(fixed, "c", "data", "a")
	s.mustApply(fixed)
	s.edit(fixed, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	s.options.RecreateImmutable = true
	for range 2 {
		result := s.apply(changed, service(t, "later"))
		if result.Objects[0].Action != activate.Waiting || !strings.Contains(result.String(), "example.com/hold") || result.Skipped != 1 {
			t.Fatalf("got %s", result)
		}
	}
	s.release(fixed)
	s.mustApply(changed)
	if got := field(s.live(changed), "data.a"); got != "c" {
		t.Errorf("got %v", got)
	}
}

func TestWhatHoldsDataIsNeverRecreated(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	claim := parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(claim, crd, widget(t, s.namespace, "w"))
	s.options.RecreateImmutable = true
	uid := s.live(claim).GetUID()
	for _, now := range objects(set(claim, []any{"ReadWriteMany"}, "spec", "accessModes"), set(crd, "Cluster", "spec", "scope")) {
		result := only(t, s.apply(now))
		if result.Err == nil || result.Err.Reason != activate.ImmutableField || !strings.Contains(result.Err.Error(), "would be lost") {
			t.Errorf("got %s", result)
		}
	}
	if s.live(claim).GetUID() != uid {
		t.Error("the claim was recreated")
	}
	s.delete(widget(t, s.namespace, "w"))
	if result := only(t, s.apply(set(crd, "Cluster", "spec", "scope"))); result.Action != activate.Recreated && result.Action != activate.Waiting {
		t.Errorf("a definition without custom resources holds nothing: got %s", result)
	}
}

func TestDuplicateItemsAreReportedAndStopLaterPhases(t *testing.T) {
	t.Parallel()
	ports := []any{map[string]any{"containerPort": int64(93)}, map[string]any{"containerPort": int64(93)}}
	env := []any{map[string]any{"name": "FOO", "value": "a"}, map[string]any{"name": "FOO", "value": "b"}}
	for name, items := range map[string][]any{"ports": ports, "env": env} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			double := deployment(t, "x")
			containers, _, _ := unstructured.NestedSlice(double.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)[name] = items
			double = set(double, containers, "spec", "template", "spec", "containers")
			scaler := parse(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x},
 spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}}`)
			s.mustApply(deployment(t, "x"))
			result := s.apply(double, scaler)
			got := result.Objects[0]
			if got.Err == nil || got.Err.Reason != activate.Rejected || result.Skipped != 1 || !s.gone(scaler) {
				t.Fatalf("got %s", result)
			}
			t.Log(got.Err)
			for _, want := range []string{"Deployment.apps " + s.namespace + "/x", `containers[name="main"].` + name} {
				if !strings.Contains(got.Err.Error(), want) {
					t.Errorf("message lacks %q: %s", want, got.Err)
				}
			}
		})
	}
}

func TestDuplicatesThatACreateAcceptedAreLeftInPeace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	double := deployment(t, "x")
	containers, _, _ := unstructured.NestedSlice(double.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "FOO", "value": "a"}, map[string]any{"name": "FOO", "value": "b"}}
	delete(containers[0].(map[string]any), "resources")
	double = set(double, containers, "spec", "template", "spec", "containers")
	s.mustApply(double)
	s.earlier()
	s.engine = activate.New(activate.Config{})
	if result := s.mustApply(double); result.Writes != 0 {
		t.Errorf("got %s", result)
	}
}

func TestUnknownFieldIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	result := only(t, s.apply(set(deployment(t, "x"), "y", "spec", "tyop")))
	if result.Err == nil || result.Err.Reason != activate.Rejected || !strings.Contains(result.Err.Error(), "spec.tyop") {
		t.Errorf("got %s", result)
	}
	t.Log(result)
	s.mustApply(deployment(t, "x"))
	result = only(t, s.apply(set(deployment(t, "x"), "y", "spec", "tyop")))
	if result.Err == nil || result.Err.Reason != activate.Rejected || !strings.Contains(result.Err.Error(), "spec.tyop") {
		t.Errorf("got %s", result)
	}
	t.Log(result)
}

func TestPolicyThatDeniesIsQuoted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	policy := parse(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+s.namespace+`}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+s.namespace+`}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  validations: [{expression: "object.data.a != 'bad'", message: "a must not be bad"}]
`)
	binding := parse(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: `+s.namespace+`},
 spec: {policyName: `+s.namespace+`, validationActions: [Deny]}}`)
	for _, object := range objects(policy, binding) {
		if err := s.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.admin.Delete(cleanup, object) })
	}
	eventually(t, "the policy works", func() bool {
		return s.admin.Create(t.Context(), s.inNamespace(configMap(t, "probe", "{a: bad}")), client.DryRunAll) != nil
	})
	s.mustApply(configMap(t, "there", "{a: good}"))
	for _, name := range []string{"absent", "there"} {
		result := only(t, s.apply(configMap(t, name, "{a: bad}")))
		if result.Err == nil || result.Err.Reason != activate.Rejected || !strings.Contains(result.Err.Error(), "a must not be bad") ||
			!strings.HasPrefix(result.Err.Error(), "ConfigMap "+s.namespace+"/"+name) {
			t.Errorf("%s: got %s", name, result)
		}
	}
}

func TestQuotaThatIsExceededIsQuoted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.stranger(parse(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {count/services: "0"}}}`))
	eventually(t, "the quota works", func() bool {
		return s.admin.Create(t.Context(), s.inNamespace(service(t, "probe")), client.DryRunAll) != nil
	})
	var result activate.Result
	eventually(t, "the quota is known", func() bool {
		result = s.apply(service(t, "x"))
		return strings.Contains(result.String(), "exceeded quota: none")
	})
	if only(t, result).Err.Reason != activate.Rejected {
		t.Errorf("got %s", result)
	}
}

func TestAllFaultsOfAPhaseAreToldAndMissingRightsAreCalledSo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	account := s.env.ServiceAccount(t, s.namespace, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create"}, ResourceNames: nil,
	})
	config := s.env.Config()
	config.Impersonate.UserName = "system:serviceaccount:" + s.namespace + ":" + account
	s.admin = newClient(t, config)
	result := s.apply(
		parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}}"), parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: b}}"),
		configMap(t, "c", "{}"), service(t, "d"),
	)
	if result.Count(activate.Failed) != 2 || result.Count(activate.Created) != 1 || result.Skipped != 1 || result.Reason() != activate.PermissionsMissing {
		t.Fatalf("got %s", result)
	}
	for _, want := range []string{"Secret " + s.namespace + "/a: ", "Secret " + s.namespace + "/b: ", "cannot get resource"} {
		if !strings.Contains(result.Err().Error(), want) {
			t.Errorf("message lacks %q: %s", want, result.Err())
		}
	}
	role := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`)
	full := s.env.ServiceAccount(t, s.namespace, rbacv1.PolicyRule{
		APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"}, Verbs: []string{"get", "create"},
	})
	config.Impersonate.UserName = "system:serviceaccount:" + s.namespace + ":" + full
	s.admin = newClient(t, config)
	if got := only(t, s.apply(role)); got.Err == nil || got.Err.Reason != activate.PermissionsMissing {
		t.Errorf("a role that grants more than its maker has: got %s", got)
	}
}

func TestMissingNamespaceIsNamed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	object := configMap(t, "x", "{}")
	object.SetNamespace("nowhere-" + s.namespace)
	got := only(t, s.apply(object))
	if got.Err == nil || got.Err.Reason != activate.Rejected || !strings.Contains(got.Err.Error(), "create the namespace") {
		t.Errorf("got %s", got)
	}
}

func TestNamespaceThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	name := "going-" + s.namespace
	namespace := parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	held := configMap(t, "held", "{}")
	held.SetNamespace(name)
	held.SetFinalizers([]string{"example.com/hold"})
	inside := configMap(t, "x", "{}")
	inside.SetNamespace(name)
	s.mustApply(namespace)
	if err := s.admin.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.Delete(t.Context(), namespace.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if result := s.apply(namespace, inside); len(result.Waiting()) != 1 || result.Skipped != 1 || len(result.Failed()) != 0 {
		t.Errorf("got %s", result)
	}
	if result := s.apply(inside); len(result.Waiting()) != 1 || !strings.Contains(result.String(), "namespace "+name+" is being deleted") {
		t.Errorf("got %s", result)
	}
	if err := s.admin.Patch(t.Context(), held, client.RawPatch(mergePatch, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is new", func() bool { return s.apply(namespace, inside).Complete })
	t.Cleanup(func() { _ = s.admin.Delete(cleanup, namespace) })
}
