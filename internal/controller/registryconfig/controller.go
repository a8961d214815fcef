// SPDX-License-Identifier: Apache-2.0

// Package registryconfig keeps the registry configuration of the manager what
// the RegistryConfig objects, the Secrets and ConfigMaps that they name, and the
// files of the node say, without a restart; and says in each object whether its
// rules are in force. The sources, the first step of RukPak's flow, use it.
package registryconfig

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/registry/objects"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
)

// Controller puts the registry configuration in force.
type Controller struct {
	Client    client.Client
	Live      client.Reader // uncached: of Secrets and ConfigMaps only what is named is read
	Config    *reach.Config // that of all sources
	Namespace string        // of what the objects name
	Files     *Files        // of the node; nil for none

	mu                  sync.Mutex
	secrets, configMaps map[string]bool // that are named
}

// everything is the one request: each change makes all rules anew.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	named, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{c.Namespace: {}},
	})
	if err != nil {
		return fmt.Errorf("make the cache of what RegistryConfigs name: %w", err)
	}
	if err := mgr.Add(named); err != nil {
		return err
	}
	kicks := make(chan event.GenericEvent, 1)
	kicks <- event.GenericEvent{Object: &v1alpha1.RegistryConfig{}} // without any object, too, there is a configuration
	if c.Files != nil {
		c.Files.changed = func() { kicks <- event.GenericEvent{Object: &v1alpha1.RegistryConfig{}} }
		if err := mgr.Add(c.Files); err != nil {
			return err
		}
	}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{everything} })
	return ctrl.NewControllerManagedBy(mgr).Named("registryconfig").
		Watches(&v1alpha1.RegistryConfig{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(kicks, all)).
		WatchesRawSource(c.watch(named, "Secret", &c.secrets)).
		WatchesRawSource(c.watch(named, "ConfigMap", &c.configMaps)).
		Complete(reconcile.Func(c.Reconcile))
}

// watch notices changes of what is named, as metadata only.
func (c *Controller) watch(in cache.Cache, kind string, names *map[string]bool) source.Source {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	toAll := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
		c.mu.Lock()
		defer c.mu.Unlock()
		if (*names)[o.GetName()] {
			return []reconcile.Request{everything}
		}
		return nil
	})
	return source.Kind(in, object, toAll)
}

// Reconcile makes all rules anew.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	list := &v1alpha1.RegistryConfigList{}
	if err := c.Client.List(ctx, list); err != nil {
		return reconcile.Result{}, err
	}
	c.remember(list.Items)
	compiled, err := objects.Compile(ctx, list.Items, live{c.Live, c.Namespace})
	if err != nil {
		return reconcile.Result{}, err // what is in force stays
	}
	c.Config.Replace(c.merge(compiled))
	return reconcile.Result{}, c.judge(ctx, list.Items, compiled)
}

// remember notes what is named before it is read, so that no change is missed.
func (c *Controller) remember(list []v1alpha1.RegistryConfig) {
	secrets, configMaps := objects.Named(list)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets, c.configMaps = maps.Clone(secrets), maps.Clone(configMaps)
}

// merge lays the rules of objects over those of the node's files: of two with
// the same prefix that of an object counts.
func (c *Controller) merge(compiled *objects.Compiled) *rules.Set {
	if c.Files == nil {
		return rules.NewSet(compiled.Rules, nil)
	}
	base := c.Files.Document()
	return rules.NewSet(append(compiled.Rules, base.Rules...), base.Logins)
}

// judge writes the status of each object.
func (c *Controller) judge(ctx context.Context, list []v1alpha1.RegistryConfig, compiled *objects.Compiled) error {
	var failed error
	for i := range list {
		config := &list[i]
		verdict := compiled.Verdicts[config.Name]
		if verdict == nil {
			continue // it is being deleted
		}
		before := config.DeepCopy()
		config.Status.ObservedGeneration = config.Generation
		config.Status.Rules = int32(verdict.InForce)
		conditions := status.Conditions{List: &config.Status.Conditions, Generation: config.Generation}
		if reason, message := sum(verdict); reason == v1alpha1.ReasonInForce {
			conditions.True(v1alpha1.ConditionReady, reason, message)
		} else {
			conditions.False(v1alpha1.ConditionReady, reason, message)
		}
		if err := status.Patch(ctx, c.Client, config, before); client.IgnoreNotFound(err) != nil {
			failed = err
		}
	}
	return failed
}

// sum gives the reason and message of a verdict: what refuses content counts
// more than what is overridden.
func sum(verdict *objects.Verdict) (reason, message string) {
	if len(verdict.Problems) == 0 {
		return v1alpha1.ReasonInForce, fmt.Sprintf("rules in force: %d", verdict.InForce)
	}
	reason = v1alpha1.ReasonPrefixConflict
	var texts []string
	for _, problem := range verdict.Problems {
		if problem.Reason != v1alpha1.ReasonPrefixConflict {
			reason = problem.Reason
		}
		texts = append(texts, problem.Text)
	}
	return reason, strings.Join(texts, "; ")
}

// live reads from the API server.
type live struct {
	reader    client.Reader
	namespace string
}

var _ objects.Reader = live{}

func (l live) Namespace() string { return l.namespace }

func (l live) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	return found, l.reader.Get(ctx, types.NamespacedName{Namespace: l.namespace, Name: name}, found)
}

func (l live) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	return found, l.reader.Get(ctx, types.NamespacedName{Namespace: l.namespace, Name: name}, found)
}
