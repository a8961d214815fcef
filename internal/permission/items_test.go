// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const manyPowers = `
- {apiVersion: v1, kind: ServiceAccount, metadata: web:web}
- {apiVersion: RBAC, kind: Role, metadata: web:reads, rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list], resourceNames: [key]}, {apiGroups: [apps, ""], resources: [pods, deployments], verbs: [get]}]}
- {apiVersion: RBAC, kind: RoleBinding, metadata: web:reads, roleRef: {kind: Role, name: reads}, subjects: [{kind: ServiceAccount, name: web, namespace: web}]}
- {apiVersion: RBAC, kind: ClusterRole, metadata: rules, rules: [{apiGroups: [example.org], resources: ["*"], verbs: ["*"]}, {nonResourceURLs: [/metrics], verbs: [get]}, {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}]}
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: rules, roleRef: {kind: ClusterRole, name: rules}, subjects: [{kind: Group, name: staff}]}
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: all, roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: jane}]}
- {apiVersion: v1, kind: Namespace, metadata: {name: web}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: agent, namespace: web}
  spec: {template: {spec: {serviceAccountName: robot, hostPID: true, volumes: [{name: v, hostPath: {path: /var/log}}], containers: [
    {name: a, image: quay.io/a, securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}, volumeMounts: [{name: v, mountPath: /v, readOnly: true}]}]}}}
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingWebhookConfiguration
  metadata: hook
  webhooks: [{name: a.b.c, clientConfig: {service: {namespace: web, name: hook}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]
`

func TestItemsAreLinesWithTheGravestFirst(t *testing.T) {
	powers, err := Of(objectsOf(t, manyPowers), bound())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, item := range powers.Items() {
		lines = append(lines, fmt.Sprint(item.Weight, " ", item.Text))
	}
	want := []string{
		"0 Group staff may bind clusterroles of API group rbac.authorization.k8s.io everywhere",
		"0 Group staff may do anything with all resources of API group example.org everywhere",
		"0 Group staff may gain more everywhere, by granting roles",
		"0 MutatingWebhook sees, changes and refuses requests to CREATE pods, by web/hook",
		"0 Pods in namespace web need Pod Security level privileged",
		"0 Pods in namespace web run privileged",
		"0 Pods in namespace web share the node's namespace PID",
		"0 User jane may do everything everywhere",
	}
	if diff := cmp.Diff(want, lines[:min(len(want), len(lines))]); diff != "" {
		t.Error(diff, "\nall of them:\n", strings.Join(lines, "\n"))
	}
	for _, want := range []string{
		"1 ServiceAccount web/web may get, list secrets named key in namespace web",
		"2 Group staff may get paths /metrics of the API server",
		"1 Pods in namespace web read the node's path /var/log",
		"1 Pods in namespace web have the capability SYS_ADMIN",
		"1 runs as ServiceAccount web/robot, which it does not bring; tokens of it are in \"Deployment.apps web/agent\"",
		"3 brings ServiceAccount web/web",
		"3 brings Namespace web",
		"3 has objects in namespace web",
		"3 runs images of quay.io",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if !slices.IsSortedFunc(powers.Items(), func(a, b Item) int { return a.Weight - b.Weight }) {
		t.Error("they are not sorted")
	}
}

// hostile is a name that ends a line, turns it round, has a letter that looks like another, and colours what follows.
const hostile = "аdmin\n\x1b[31mServiceAccount \u202e"

func TestNoNameOfContentLooksLikeAnother(t *testing.T) {
	names := []string{hostile}
	who := Subject{Kind: hostile, Namespace: hostile, Name: hostile}
	powers := &Powers{
		Grants: []Grant{
			{Subject: who, Namespace: hostile, Rules: []rbacv1.PolicyRule{{Verbs: names, APIGroups: names, Resources: names, ResourceNames: names}}},
			{Subject: who, Rules: []rbacv1.PolicyRule{{Verbs: names, NonResourceURLs: names}}},
		},
		MayGain:    []Gain{{Subject: &who, Namespace: hostile, Way: WayRunAs, Value: hostile}},
		Accounts:   []Account{{Namespace: hostile, Name: hostile, Tokens: names}, {Namespace: hostile, Name: hostile, Owned: true}},
		Intercepts: []Intercept{{By: APIService, Operation: hostile, Group: hostile, Resource: hostile, Only: hostile, Target: hostile}},
		Owns:       []Owned{{Group: hostile, Kind: hostile, Name: hostile}},
		Namespaces: names,
		Registries: []Registry{{Name: hostile}},
	}
	for _, what := range []string{PodLevel, PodViolates, PodHostPath, PodHostPathRead, PodHostNamespace, PodPrivileged, PodCapability} {
		powers.Pods = append(powers.Pods, PodPower{Namespace: hostile, What: what, Value: hostile})
	}
	items := powers.Items()
	if len(items) != 16 {
		t.Errorf("%d items", len(items))
	}
	for _, item := range items {
		if strings.ContainsFunc(item.Text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%s: %q", item.Power, item.Text)
		}
	}
}

func TestKindsOfSubjectsInContentAreShownAsTheyAre(t *testing.T) {
	powers, err := Of(objectsOf(t, `
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: x, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: "User\x1b[8m", name: jane}]}`), bound())
	if err != nil {
		t.Fatal(err)
	}
	if text := powers.Items()[1].Text; text != `"User\x1b[8m" jane may get secrets everywhere` {
		t.Errorf("%q", text)
	}
}

func TestWhatLooksQuotedIsNotTakenForWhatIs(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"admin", "аdmin", `"\u0430dmin"`, `\u0430dmin`, `"admin"`, "", `""`, "admin ", `"admin "`} {
		text := safely(name)
		if other, known := seen[text]; known {
			t.Errorf("%q and %q are both shown as %s", name, other, text)
		}
		seen[text] = name
	}
	if safely("system:serviceaccounts:kube-system") != "system:serviceaccounts:kube-system" || safely("a/b*.c-d_e@f") != "a/b*.c-d_e@f" {
		t.Error("a plain name is quoted")
	}
}

func TestNothingGraveHidesBehindWhatIsLong(t *testing.T) {
	var names []string
	for i := range 2*maxListed + 3 {
		names = append(names, fmt.Sprintf("a%02d%s", i, strings.Repeat("x", 30*(i%7))))
	}
	p := Powers{Grants: []Grant{{Subject: GroupSubject("g"), Rules: []rbacv1.PolicyRule{{
		Verbs: append(slices.Clone(names), "delete"), APIGroups: []string{""}, Resources: append(slices.Clone(names), "secrets"),
	}}}}}
	items := p.Items()
	grave, all := false, NewRules()
	for _, item := range items {
		grave = grave || strings.Contains(item.Text, "delete") && strings.Contains(item.Text, "secrets")
		if strings.Contains(item.Text, " more ") || len(item.Text) > 5*maxText {
			t.Errorf("a line is cut, or long: %s", item.Text)
		}
		all = all.Union(NewRules(item.Rule))
	}
	if !grave {
		t.Error("no line says that Secrets may be deleted")
	}
	if whole := NewRules(p.Grants[0].Rules...); !all.Covers(whole) || !whole.Covers(all) {
		t.Error("the pieces are not the rule")
	}
}

// A way, a power of Pods or an interception that is added without words would be a line that breaks off.
func TestEverythingHasWords(t *testing.T) {
	for _, way := range constantsOf(t, "gain.go", "Way") {
		if waysText[way] == "" {
			t.Errorf("no words for the way %s", way)
		}
	}
	for _, what := range constantsOf(t, "pods.go", "Pod") {
		value := "value"
		if what == PodPrivileged {
			value = ""
		}
		if text := podItem(PodPower{Namespace: "n", What: what, Value: value}).Text; text == "Pods in namespace n "+value {
			t.Errorf("no words for the power %s of Pods", what)
		}
	}
	for _, by := range constantsOf(t, "intercept.go", "") {
		if text := interceptItem(Intercept{By: by, Operation: "*", Resource: "pods"}).Text; strings.HasPrefix(text, by+"  ") {
			t.Errorf("no words for %s: %s", by, text)
		}
	}
}

// constantsOf are the values of the text constants that a file of this package declares by names with a prefix.
func constantsOf(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		block, ok := node.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			return true
		}
		for _, spec := range block.Specs {
			one := spec.(*ast.ValueSpec)
			literal, ok := one.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !ast.IsExported(one.Names[0].Name) || !strings.HasPrefix(one.Names[0].Name, prefix) {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) < 5 {
		t.Fatalf("%s has the constants %q only", file, values)
	}
	return values
}
