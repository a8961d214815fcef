// SPDX-License-Identifier: Apache-2.0

// Package roles keeps what roles, bindings and service accounts are live, and gives it to plan as a permission.Snapshot. In the flow
// (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands beside plan.
package roles

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/permission"
)

// ErrNotRead says that the roles of the cluster have not all been read yet.
var ErrNotRead = errors.New("the roles and bindings of the cluster have not been read yet")

// Live gives snapshots of what is live. It is safe for concurrent use.
type Live struct {
	cache   cache.Cache
	synced  []toolscache.InformerSynced
	changes atomic.Uint64

	mutex    sync.Mutex
	made     *permission.Snapshot
	madeFrom uint64
}

// kinds that decide what somebody may do.
func kinds() []client.Object {
	return []client.Object{&rbacv1.Role{}, &rbacv1.ClusterRole{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRoleBinding{}, &corev1.ServiceAccount{}}
}

// ByObject is how the cache of a manager should hold the kinds: without what no snapshot needs.
func ByObject() map[client.Object]cache.ByObject {
	held := map[client.Object]cache.ByObject{}
	for _, kind := range kinds() {
		held[kind] = cache.ByObject{Transform: bare}
	}
	return held
}

// bare drops what is not looked at.
func bare(object any) (any, error) {
	switch object := object.(type) {
	case *rbacv1.Role:
		object.ObjectMeta = identity(object.ObjectMeta)
	case *rbacv1.RoleBinding:
		object.ObjectMeta = identity(object.ObjectMeta)
	case *rbacv1.ClusterRoleBinding:
		object.ObjectMeta = identity(object.ObjectMeta)
	case *rbacv1.ClusterRole:
		labels := object.Labels // by which roles are aggregated
		object.ObjectMeta = identity(object.ObjectMeta)
		object.Labels = labels
	case *corev1.ServiceAccount:
		object.ObjectMeta = identity(object.ObjectMeta)
		object.Secrets, object.ImagePullSecrets = nil, nil
	}
	return object, nil
}

func identity(of metav1.ObjectMeta) metav1.ObjectMeta {
	bare := metav1.ObjectMeta{Name: of.Name, Namespace: of.Namespace, UID: of.UID, ResourceVersion: of.ResourceVersion}
	if owner, ok := ownership.OwnerOf(&of); ok {
		bare.Labels = map[string]string{ownership.LabelInstanceUID: string(owner.UID)}
	}
	return bare
}

// New begins to watch. It does not wait.
func New(ctx context.Context, from cache.Cache) (*Live, error) {
	l := &Live{cache: from}
	changed := func() { l.changes.Add(1) }
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	for _, kind := range kinds() {
		informer, err := from.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		l.synced = append(l.synced, registration.HasSynced)
	}
	return l, nil
}

// Snapshot is what is live now, as far as the watches tell. As long as nothing changes it is the same one. Before all
// has been read the error is ErrNotRead.
func (l *Live) Snapshot(ctx context.Context) (*permission.Snapshot, error) {
	for _, synced := range l.synced {
		if !synced() {
			return nil, ErrNotRead
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	changes := l.changes.Load() // before it is read: what comes meanwhile makes it anew
	if l.made != nil && changes == l.madeFrom {
		return l.made, nil
	}
	live, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	l.made, l.madeFrom = permission.NewSnapshot(live), changes
	return l.made, nil
}

// read takes the objects of the cache as they are: a snapshot changes none of them.
func (l *Live) read(ctx context.Context) (permission.Live, error) {
	var live permission.Live
	var roles rbacv1.RoleList
	var clusterRoles rbacv1.ClusterRoleList
	var bindings rbacv1.RoleBindingList
	var clusterBindings rbacv1.ClusterRoleBindingList
	var accounts corev1.ServiceAccountList
	for _, list := range []client.ObjectList{&roles, &clusterRoles, &bindings, &clusterBindings, &accounts} {
		if err := l.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return live, fmt.Errorf("list what is live: %w", err)
		}
	}
	live.Roles, live.ClusterRoles = pointers(roles.Items), pointers(clusterRoles.Items)
	live.RoleBindings, live.ClusterRoleBindings = pointers(bindings.Items), pointers(clusterBindings.Items)
	live.Accounts = pointers(accounts.Items)
	return live, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
