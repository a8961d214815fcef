// SPDX-License-Identifier: Apache-2.0

package roles

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/internal/testenv"
)

var cluster testenv.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// bench is what is live on an API server, with a client that changes it.
type bench struct {
	*Live
	client.Client
	namespace string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	env := cluster.Env(t)
	direct, err := client.New(env.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	held, err := cache.New(env.Config(), cache.Options{ByObject: ByObject()})
	if err != nil {
		t.Fatal(err)
	}
	live, err := New(t.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Snapshot(t.Context()); !errors.Is(err, ErrNotRead) {
		t.Fatalf("before anything is read: %v", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- held.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &bench{Live: live, Client: direct, namespace: env.NewNamespace(t)}
}

// until waits for a snapshot of which something is true.
func (b *bench) until(t *testing.T, what string, is func(*permission.Snapshot) bool) *permission.Snapshot {
	t.Helper()
	var snapshot *permission.Snapshot
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		if snapshot, err = b.Snapshot(ctx); errors.Is(err, ErrNotRead) {
			return false, nil
		}
		return err == nil && is(snapshot), err
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return snapshot
}

func (b *bench) may(resource string) func(*permission.Snapshot) bool {
	return func(live *permission.Snapshot) bool {
		return live.May(permission.AccountSubject(b.namespace, "robot"), b.namespace).Allows(permission.Rule{Verb: "get", Resource: resource})
	}
}

func not(is func(*permission.Snapshot) bool) func(*permission.Snapshot) bool {
	return func(live *permission.Snapshot) bool { return !is(live) }
}

func reads(resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}}
}

func (b *bench) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace, Name: name, Annotations: map[string]string{"long": "text"}}
}

func (b *bench) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) robot() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: "robot"}}
}

func TestASnapshotFollowsRolesAndBindings(t *testing.T) {
	b := newBench(t)
	role := &rbacv1.Role{ObjectMeta: b.named("r"), Rules: reads("configmaps")}
	binding := &rbacv1.RoleBinding{ObjectMeta: b.named("r"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}, Subjects: b.robot()}
	b.must(t, b.Create(t.Context(), role))
	b.must(t, b.Create(t.Context(), binding))
	before := b.until(t, "a role is bound", b.may("configmaps"))

	role.Rules = reads("secrets")
	b.must(t, b.Update(t.Context(), role))
	b.until(t, "the role has other rules", b.may("secrets"))
	if b.may("secrets")(before) || !b.may("configmaps")(before) {
		t.Error("a snapshot that was given has changed")
	}
	b.must(t, b.Delete(t.Context(), binding))
	b.until(t, "the binding is gone", not(b.may("secrets")))
}

func TestASnapshotFollowsAggregatedRoles(t *testing.T) {
	b := newBench(t)
	label := map[string]string{"part-of": b.namespace}
	whole := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: b.namespace + "-whole"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}}},
	}
	part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-part", Labels: label}, Rules: reads("pods")}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-whole"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: whole.Name}, Subjects: b.robot(),
	}
	for _, object := range []client.Object{whole, binding, part} {
		b.must(t, b.Create(t.Context(), object))
		t.Cleanup(func() { _ = b.Delete(context.WithoutCancel(t.Context()), object) })
	}
	b.until(t, "no controller of this API server aggregates, the labels are enough", b.may("pods"))
	part.Labels = nil
	b.must(t, b.Update(t.Context(), part))
	b.until(t, "the label is gone", not(b.may("pods")))
}

func TestOnlyAChangeMakesASnapshotAnew(t *testing.T) {
	b := newBench(t)
	quiet := b.until(t, "all is read", func(*permission.Snapshot) bool { return true })
	// The API server makes roles of its own as long as it starts.
	quiet = b.until(t, "nothing changes", func(now *permission.Snapshot) bool {
		same := now == quiet
		quiet = now
		return same
	})
	b.must(t, b.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.named("other")}))
	if again, err := b.Snapshot(t.Context()); err != nil || again != quiet {
		t.Errorf("made anew, though nothing changed that it is made of: %v", err)
	}
	b.must(t, b.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: b.named("robot")}))
	b.until(t, "there is an account more", func(now *permission.Snapshot) bool { return now != quiet })
}

func TestObjectsAreHeldWithoutWhatNobodyLooksAt(t *testing.T) {
	b := newBench(t)
	automount := false
	account := &corev1.ServiceAccount{
		ObjectMeta: b.named("robot"), AutomountServiceAccountToken: &automount,
		Secrets: []corev1.ObjectReference{{Name: "s"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}},
	}
	account.Labels = map[string]string{"a": "b"}
	b.must(t, b.Create(t.Context(), account))
	b.must(t, b.Create(t.Context(), &rbacv1.Role{ObjectMeta: b.named("r"), Rules: reads("pods")}))
	first := b.until(t, "all is read", func(*permission.Snapshot) bool { return true })
	b.must(t, b.Create(t.Context(), &rbacv1.Role{ObjectMeta: b.named("last"), Rules: reads("pods")}))
	b.until(t, "there is a role more", func(now *permission.Snapshot) bool { return now != first })

	live, err := b.read(t.Context())
	b.must(t, err)
	i := slices.IndexFunc(live.Accounts, func(a *corev1.ServiceAccount) bool { return a.Namespace == b.namespace && a.Name == "robot" })
	if i < 0 {
		t.Fatal("the account is not held")
	}
	held := live.Accounts[i]
	if held.Labels != nil || held.Secrets != nil || held.ImagePullSecrets != nil {
		t.Errorf("held as %+v", held)
	}
	if held.AutomountServiceAccountToken == nil || *held.AutomountServiceAccountToken {
		t.Error("whether tokens are mounted is forgotten")
	}
	if len(live.Roles) == 0 || len(live.ClusterRoles) == 0 || len(live.ClusterRoleBindings) == 0 {
		t.Fatalf("the API server has %d roles, %d cluster roles, %d bindings", len(live.Roles), len(live.ClusterRoles), len(live.ClusterRoleBindings))
	}
	var metas []metav1.ObjectMeta
	for _, o := range live.Roles {
		metas = append(metas, o.ObjectMeta)
	}
	for _, o := range live.ClusterRoles {
		metas = append(metas, o.ObjectMeta)
	}
	for _, o := range live.RoleBindings {
		metas = append(metas, o.ObjectMeta)
	}
	for _, o := range live.ClusterRoleBindings {
		metas = append(metas, o.ObjectMeta)
	}
	for _, meta := range append(metas, held.ObjectMeta) {
		if meta.ManagedFields != nil || meta.Annotations != nil {
			t.Errorf("%s/%s is held with annotations or managed fields", meta.Namespace, meta.Name)
		}
	}
}
