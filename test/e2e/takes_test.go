// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// takes are ways by which content grants itself rights, and what its plan says of each. NS stands for the namespace.
var takes = map[string]struct{ objects, says string }{
	"a role that exists": {`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS-takes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: worker, namespace: NS}]`, "ServiceAccount NS/worker may do everything"},
	"an aggregated label": {`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-takes, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list]}]`, "ServiceAccount NS/bound may get, list secrets"},
	"a group of administrators": {`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS-takes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:authenticated"}]`, "Group system:authenticated may do everything"},
	"a token mount": {`
apiVersion: v1
kind: Pod
metadata: {name: takes}
spec: {serviceAccountName: strong, containers: [{name: c, image: "example.com/c:1"}]}`, "ServiceAccount NS/strong"},
	"a Secret with a token": {`
apiVersion: v1
kind: Secret
metadata: {name: takes, annotations: {kubernetes.io/service-account.name: strong}}
type: kubernetes.io/service-account-token`, "ServiceAccount NS/strong"},
	"a webhook": {`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS-takes}
webhooks:
- name: takes.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://takes.example.com/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [CREATE]}]`, "secrets"},
	"a conversion": {`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: takes.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: Take, plural: takes, singular: take, listKind: TakeList}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://takes.example.com/"}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}`, "takes.NS.example.com"},
}

// What content takes for itself is told, whatever the way, and a class that approves what does not grow approves none of it.
func TestContentThatGrantsItselfRightsWaitsForAPerson(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "strong"}})
	a.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "bound"}})
	a.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "bound"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: "bound"}},
	})
	a.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "strong"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: "strong"}},
	})
	a.changeClass(noGrowth)
	base := rightsOf(`[{apiGroups: [""], resources: [services], verbs: [get]}]`)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": base}))
	a.planned("app-1")
	if got := a.votes(a.user(), "app-1"); got != v1alpha1.ReasonCounted {
		t.Fatalf("the first approval: %s", got)
	}
	a.ready("app")
	number := 1
	for name, take := range takes {
		number++
		ref := a.push(fmt.Sprintf("v%d", number), map[string]string{"a.yaml": base, "b.yaml": strings.ReplaceAll(take.objects, "NS", a.namespace)})
		a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
		revision := fmt.Sprintf("app-%d", number)
		a.planned(revision)
		a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
		found := a.revision(revision)
		if found.Status.ActivatedAt != nil || len(found.Status.Decisions) > 0 {
			t.Errorf("%s: decided by %+v", name, found.Status.Decisions)
		}
		powers := found.Status.Plan.Permissions
		if powers == nil || powers.Unknown != "" {
			t.Errorf("%s: its permissions are not known: %+v", name, powers)
			continue
		}
		says, got := strings.ReplaceAll(take.says, "NS", a.namespace), slices.Concat(powers.Gained, powers.MayGain)
		if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, says) }) {
			t.Errorf("%s: %q is not in\n%s", name, says, strings.Join(got, "\n"))
		}
	}
}
