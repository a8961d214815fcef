// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/provisioner"
)

func objectsOf(t *testing.T, texts ...string) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

func TestPodSecurityIsTheLevelOfTheLeastStrictPod(t *testing.T) {
	const (
		none       = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
		restricted = `{apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
			containers: [{name: a, image: b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`
		privileged = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: p}, spec: {template: {spec: {hostNetwork: true, securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
			containers: [{name: a, image: b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}}}`
	)
	for name, test := range map[string]struct {
		before, after []string
		want          PodSecurity
	}{
		"no Pods":      {nil, []string{none}, PodSecurity{}},
		"strict Pods":  {nil, []string{none, restricted}, PodSecurity{After: "restricted"}},
		"one is worse": {[]string{restricted}, []string{privileged, restricted}, PodSecurity{Before: "restricted", After: "privileged", Reasons: []string{"DaemonSet p: host namespaces (hostNetwork=true)"}}},
		"it is better": {[]string{privileged}, []string{restricted}, PodSecurity{Before: "privileged", After: "restricted"}},
	} {
		t.Run(name, func(t *testing.T) {
			from := Runtime{Live: permission.NewSnapshot(permission.Live{}), Active: objectsOf(t, test.before...)}
			if diff := cmp.Diff(test.want, from.permissions(objectsOf(t, test.after...)).PodSecurity); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const (
	reader  = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: web}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]}`
	split   = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: web}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}, {apiGroups: [""], resources: [configmaps], verbs: [get, list]}]}`
	writer  = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: web}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, delete]}]}`
	bound   = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: a, namespace: web}]}`
	evil    = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "x"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "аdmin"}, subjects: [{kind: User, name: "jаne` + "\u202e" + `"}]}`
	account = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: web}}`
)

func TestPermissionsAreComparedWithWhatIsActive(t *testing.T) {
	owner := ownership.Owner{UID: "one", Namespace: "web", Name: "app"}
	for name, test := range map[string]struct {
		active, left, content []string
		live                  permission.Live
		gained, lost          []string
	}{
		"the first revision": {nil, nil, []string{reader, bound, account}, permission.Live{},
			[]string{"ServiceAccount web/a may get, list configmaps in namespace web", "has objects in namespace web"}, nil},
		"the same, written otherwise": {[]string{reader, bound, account}, nil, []string{account, bound, split}, permission.Live{}, nil, nil},
		"one verb more":               {[]string{reader, bound, account}, nil, []string{writer, bound, account}, permission.Live{}, []string{"ServiceAccount web/a may delete configmaps in namespace web"}, nil},
		"one verb less":               {[]string{writer, bound, account}, nil, []string{reader, bound, account}, permission.Live{}, nil, []string{"ServiceAccount web/a may delete configmaps in namespace web"}},
		"what a revision that failed left in the cluster is no right that it has": {
			[]string{reader, bound, account}, []string{writer}, []string{writer, bound, account},
			permission.Live{Roles: []*rbacv1.Role{{
				ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "web", Labels: owner.Labels()},
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "delete"}}},
			}}},
			[]string{"ServiceAccount web/a may delete configmaps in namespace web"}, nil,
		},
		"a binding of others is theirs, though a revision that failed had one of that name": {
			nil, []string{bound}, []string{account},
			permission.Live{
				ClusterRoles: []*rbacv1.ClusterRole{{
					ObjectMeta: metav1.ObjectMeta{Name: "strong"},
					Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
				}},
				RoleBindings: []*rbacv1.RoleBinding{{
					ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "web"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "strong"},
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "a", Namespace: "web"}},
				}},
			},
			[]string{"ServiceAccount web/a may list nodes in namespace web", "has objects in namespace web"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := Runtime{
				Live: permission.NewSnapshot(test.live), Owner: owner.UID, Active: objectsOf(t, test.active...),
				Left: []provisioner.Phase{{Objects: objectsOf(t, append(test.left, test.active...)...)}},
			}
			p := from.permissions(objectsOf(t, test.content...))
			gained, mayGain, lost := p.Lines()
			if diff := cmp.Diff([][]string{test.gained, nil, test.lost}, [][]string{gained, mayGain, lost}); diff != "" {
				t.Error(diff)
			}
			if p.Grows() != (test.gained != nil) {
				t.Errorf("it grows: %v", p.Grows())
			}
		})
	}
}

func TestPermissionsThatAreNotKnownMightGrow(t *testing.T) {
	for name, from := range map[string]Runtime{
		"nobody knows": {Unknown: "the manifests are lost"},
		"an object that no API server would take": {Live: permission.NewSnapshot(permission.Live{})},
	} {
		p := from.permissions(objectsOf(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: web}, rules: nonsense}`))
		if p.Unknown == "" || !p.Grows() {
			t.Errorf("%s: %+v", name, p)
		}
	}
	var none *Permissions
	if !none.Grows() {
		t.Error("a plan without any says that nothing grows")
	}
}
