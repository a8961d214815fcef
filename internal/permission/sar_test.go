// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rukpak.io/rukpak/internal/testenv"
)

var cluster = testenv.Shared{Options: testenv.Options{Controllers: true}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// dice makes random rules, roles and requests of few words, so that they meet often.
type dice struct {
	*rand.Rand
	prefix     string // of cluster-scoped names
	namespaces []string
}

func (d *dice) of(words ...string) string { return words[d.IntN(len(words))] }

func (d *dice) some(words ...string) []string {
	chosen := []string{d.of(words...)}
	for d.IntN(3) == 0 {
		chosen = append(chosen, d.of(words...))
	}
	return chosen
}

func (d *dice) verb() string {
	return d.of("get", "list", "create", "patch", "bind", "*", "impersonate")
}
func (d *dice) group() string { return d.of("", "apps", "example.com", "*") }
func (d *dice) resource() string {
	return d.of("pods", "pods/log", "pods/*", "widgets", "widgets/scale", "*/scale", "*/log", "secrets", "*", "*/*")
}
func (d *dice) path() string {
	return d.of("/metrics", "/logs", "/logs/*", "/logs/a", "/l*", "*", "/", "/logs/a*", "/logs/**")
}

func (d *dice) rule(paths bool) rbacv1.PolicyRule {
	var verbs []string
	for range 1 + d.IntN(2) {
		verbs = append(verbs, d.verb())
	}
	if paths && d.IntN(4) == 0 {
		return rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: []string{d.path(), d.path()}}
	}
	rule := rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{d.group(), d.group()}, Resources: []string{d.resource(), d.resource()}}
	if d.IntN(3) == 0 {
		rule.ResourceNames = d.some("one", "two", "", "*")
	}
	return rule
}

func (d *dice) rules(paths bool) (rules []rbacv1.PolicyRule) {
	for range 2 + d.IntN(2) {
		rules = append(rules, d.rule(paths))
	}
	return rules
}

func (d *dice) subject() rbacv1.Subject {
	switch d.IntN(4) {
	case 0:
		return rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: d.of("system:serviceaccounts", "system:serviceaccounts:"+d.of(d.namespaces...), d.prefix+"team", "system:authenticated")}
	case 1:
		return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: d.of(d.prefix+"jane", testenv.Account(d.of(d.namespaces...), "a"))}
	}
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: d.of(d.namespaces...), Name: d.of("a", "b", "c")}
}

// objects are roles and bindings.
func (d *dice) objects() (all []runtime.Object) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: d.prefix + name}
	}
	for i := range 24 {
		name := fmt.Sprintf("role-%d", i)
		all = append(all, &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta(d.namespaces[i%len(d.namespaces)], name), Rules: d.rules(false)})
		cluster := &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta("", name), Rules: d.rules(true)}
		cluster.Labels = map[string]string{d.prefix + "to": d.of("x", "y", "z")}
		if i >= 20 {
			selector := metav1.LabelSelector{MatchLabels: map[string]string{d.prefix + "to": d.of("x", "y", "z")}}
			cluster.Rules, cluster.AggregationRule = nil, &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}}
		}
		all = append(all, cluster)
	}
	for i := range 40 {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("%srole-%d", d.prefix, d.IntN(25))}
		if i%3 == 0 {
			all = append(all, &rbacv1.ClusterRoleBinding{TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta("", fmt.Sprint(i)), RoleRef: ref, Subjects: []rbacv1.Subject{d.subject()}})
			continue
		}
		ref.Kind = d.of("Role", "ClusterRole")
		all = append(all, &rbacv1.RoleBinding{
			TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta(d.of(d.namespaces...), fmt.Sprint(i)), RoleRef: ref, Subjects: []rbacv1.Subject{d.subject(), d.subject()},
		})
	}
	return all
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func loose(t testing.TB, object any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

func create(ctx context.Context, c kubernetes.Interface, object runtime.Object) (err error) {
	none := metav1.CreateOptions{}
	switch o := object.(type) {
	case *rbacv1.Role:
		_, err = c.RbacV1().Roles(o.Namespace).Create(ctx, o, none)
	case *rbacv1.ClusterRole:
		_, err = c.RbacV1().ClusterRoles().Create(ctx, o, none)
	case *rbacv1.RoleBinding:
		_, err = c.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, none)
	case *rbacv1.ClusterRoleBinding:
		_, err = c.RbacV1().ClusterRoleBindings().Create(ctx, o, none)
	default:
		err = fmt.Errorf("%T", object)
	}
	return err
}

func liveOf(t testing.TB, c kubernetes.Interface) (live Live) {
	t.Helper()
	roles, err1 := c.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{})
	clusterRoles, err2 := c.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	bindings, err3 := c.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	clusterBindings, err4 := c.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range roles.Items {
		live.Roles = append(live.Roles, &roles.Items[i])
	}
	for i := range clusterRoles.Items {
		live.ClusterRoles = append(live.ClusterRoles, &clusterRoles.Items[i])
	}
	for i := range bindings.Items {
		live.RoleBindings = append(live.RoleBindings, &bindings.Items[i])
	}
	for i := range clusterBindings.Items {
		live.ClusterRoleBindings = append(live.ClusterRoleBindings, &clusterBindings.Items[i])
	}
	return live
}

// aggregated waits until the cluster has aggregated what the model says it will.
func aggregated(t *testing.T, c kubernetes.Interface) Live {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		live := liveOf(t, c)
		snapshot, behind := NewSnapshot(live), ""
		for _, r := range live.ClusterRoles {
			computed, stored := NewRules(snapshot.rulesOf(snapshot.role(roleID{"", r.Name}))...), NewRules(r.Rules...)
			if !computed.Covers(stored) || !stored.Covers(computed) {
				behind = r.Name
			}
		}
		if behind == "" {
			return live
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cluster aggregates ClusterRole %s otherwise than the model", behind)
		}
	}
}

// question is a request of somebody.
type question struct {
	subject   Subject
	groups    []string
	namespace string
	request   Rule
}

func (d *dice) question() question {
	q := question{namespace: d.of(append([]string{""}, d.namespaces...)...)}
	if d.IntN(3) == 0 {
		q.subject, q.groups = Subject{Kind: "User", Name: d.prefix + d.of("jane", "john")}, d.some(d.prefix+"team", Authenticated, AllAccounts, "nobody")
	} else {
		q.subject = AccountSubject(d.of(d.namespaces...), d.of("a", "b", "c", "d"))
	}
	q.request = Rule{Verb: d.verb(), Group: d.group(), Resource: d.of("pods", "widgets", "secrets", "x", "*") + d.of("", "", "/log", "/scale", "/x", "/*"), Name: d.of("", "one", "two", "*")}
	if d.IntN(5) == 0 {
		q.namespace, q.request = "", Rule{Verb: d.verb(), Path: d.of("/metrics", "/logs", "/logs/a", "/logs/ab", "/logs/", "/x", "/lx", "/", "/logs/a*")}
	}
	return q
}

func (q question) review() *authorizationv1.SubjectAccessReview {
	spec := authorizationv1.SubjectAccessReviewSpec{User: q.subject.Name, Groups: q.groups}
	if q.subject.Kind == rbacv1.ServiceAccountKind {
		spec.User = testenv.Account(q.subject.Namespace, q.subject.Name)
		for _, s := range q.subject.subjects()[1:] {
			spec.Groups = append(spec.Groups, s.Name)
		}
	}
	if r := q.request; r.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: r.Verb, Path: r.Path}
	} else {
		resource, below, _ := strings.Cut(r.Resource, "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: below, Name: r.Name, Namespace: q.namespace,
		}
	}
	return &authorizationv1.SubjectAccessReview{Spec: spec}
}

const questions = 6000

// Half of the roles and bindings are taken as live and half as content; the API server has them all.
func TestModelAgreesWithTheAuthorizerOfTheAPIServer(t *testing.T) {
	env := cluster.Env(t)
	config := env.Config()
	config.QPS = -1
	c, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "permission"))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 1)), namespaces: []string{env.NewNamespace(t), env.NewNamespace(t), env.NewNamespace(t)}}
	d.prefix = d.namespaces[0] + "-"
	var content []*unstructured.Unstructured
	for _, object := range d.objects() {
		if err := create(t.Context(), c, object); err != nil {
			t.Fatal(err)
		}
		if d.IntN(2) == 0 {
			content = append(content, loose(t, object))
		}
		t.Cleanup(func() { deleteObject(c, object) })
	}
	live := aggregated(t, c)
	whole, err := read(content, NewSnapshot(live).Without(content))
	if err != nil {
		t.Fatal(err)
	}
	whole.world.bounded = false // thousands of questions are not one content's
	world := &Snapshot{world: whole.world}
	asked := make([]question, questions)
	for i := range asked {
		asked[i] = d.question()
	}
	allowed := ask(t, c, asked)
	yes := 0
	for i, q := range asked {
		if allowed[i] {
			yes++
		}
		if got := world.May(q.subject, q.namespace, q.groups...).Allows(q.request); got != allowed[i] {
			t.Errorf("%s (groups %q) in namespace %q: %+v: the API server says %v, the model %v", q.subject, q.groups, q.namespace, q.request, allowed[i], got)
		}
	}
	t.Logf("%d of %d are allowed", yes, len(asked))
	if yes < questions/20 || yes > questions*19/20 {
		t.Errorf("%d of %d are allowed: the questions tell little", yes, len(asked))
	}
}

// ask asks the API server until it has heard of the latest role.
func ask(t *testing.T, c kubernetes.Interface, asked []question) []bool {
	t.Helper()
	var before []bool
	for {
		allowed := make([]bool, len(asked))
		group, ctx := errgroup.WithContext(t.Context())
		group.SetLimit(16)
		for i, q := range asked {
			group.Go(func() error {
				answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, q.review(), metav1.CreateOptions{})
				if err == nil {
					allowed[i] = answer.Status.Allowed
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if before == nil { // a few of them again, since the authorizer hears of roles some milliseconds later
			before, asked = allowed, asked[:min(len(asked), 500)]
			continue
		}
		if slices.Equal(before[:len(allowed)], allowed) {
			return before
		}
		t.Fatal("the API server answers the same questions differently: it has not heard of all roles yet")
	}
}

func deleteObject(c kubernetes.Interface, object runtime.Object) {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		_ = c.RbacV1().ClusterRoles().Delete(context.Background(), o.Name, metav1.DeleteOptions{})
	case *rbacv1.ClusterRoleBinding:
		_ = c.RbacV1().ClusterRoleBindings().Delete(context.Background(), o.Name, metav1.DeleteOptions{})
	}
}
