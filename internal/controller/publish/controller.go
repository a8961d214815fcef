// SPDX-License-Identifier: Apache-2.0

// Package publish makes the content of Bundles that ask for it known to Flux: an
// ExternalArtifact beside the Bundle, which says where its archive is and what
// digest it has. It stands beside the flow and reads its content store.
package publish

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/contentapi"
	"rukpak.io/rukpak/internal/controller/pace"
)

// Artifacts knows where archives are and what they are.
type Artifacts interface {
	URL(bundle *v1alpha1.Bundle) (url, path string)
	Archive(ctx context.Context, bundle *v1alpha1.Bundle) (contentapi.Archived, error)
}

// Kind is what is made.
var Kind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "ExternalArtifact"}

// fluxPause is how long it takes until it is looked again whether Flux is installed.
const fluxPause = 5 * time.Minute

// Controller keeps an ExternalArtifact for each Bundle that asks for one.
type Controller struct {
	Client    client.Client
	Live      client.Client // uncached: artifacts are read when a Bundle changes
	Recorder  events.EventRecorder
	Artifacts Artifacts // nil: none are served
	Workers   int
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("publish").
		For(&v1alpha1.Bundle{}, builder.WithPredicates(asked())).
		WithOptions(pace.Options(c.Workers)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// asked passes Bundles that ask for an artifact, or did before a change.
func asked() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return asks(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return asks(e.ObjectNew) || asks(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false }, // the artifact is the Bundle's own and goes with it
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func asks(object client.Object) bool {
	return object.GetAnnotations()[v1alpha1.AnnotationPublish] == v1alpha1.PublishFlux
}

// Reconcile makes, updates or removes the artifact of one Bundle.
func (c *Controller) Reconcile(ctx context.Context, bundle *v1alpha1.Bundle) (ctrl.Result, error) {
	if !bundle.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if !asks(bundle) {
		return ctrl.Result{}, c.remove(ctx, bundle)
	}
	if c.Artifacts == nil {
		c.warn(bundle, "NotServed", "artifacts are not served: give the manager --artifact-bind-address")
		return ctrl.Result{}, nil
	}
	if bundle.Status.Content == nil {
		return ctrl.Result{}, nil // comes again with its content
	}
	err := c.keep(ctx, bundle)
	switch {
	case meta.IsNoMatchError(err):
		c.warn(bundle, "FluxNotInstalled", "the cluster has no kind ExternalArtifact of "+Kind.GroupVersion().String())
		return ctrl.Result{RequeueAfter: fluxPause}, nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	return ctrl.Result{}, err
}

func (c *Controller) keep(ctx context.Context, bundle *v1alpha1.Bundle) error {
	found, err := c.find(ctx, bundle)
	if apierrors.IsNotFound(err) {
		found = fresh(bundle)
		err = c.Live.Create(ctx, found)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(found, bundle) {
		c.warn(bundle, "NameTaken", fmt.Sprintf("there is an ExternalArtifact %q that is not of this Bundle; it is left alone", bundle.Name))
		return nil
	}
	archive, err := c.Artifacts.Archive(ctx, bundle)
	if err != nil {
		return err
	}
	url, path := c.Artifacts.URL(bundle)
	wanted := map[string]any{
		"url": url, "path": path, "digest": archive.Digest.String(), "size": archive.Size,
		"revision": "latest@" + string(bundle.Status.Content.Digest),
	}
	return c.tell(ctx, found, wanted)
}

// tell writes the status, if it says something else.
func (c *Controller) tell(ctx context.Context, found *unstructured.Unstructured, wanted map[string]any) error {
	present, _, _ := unstructured.NestedMap(found.Object, "status", "artifact")
	delete(present, "lastUpdateTime")
	if equality.Semantic.DeepEqual(present, wanted) {
		return nil
	}
	now := time.Now().UTC().Format(time.RFC3339)
	wanted["lastUpdateTime"] = now
	found.Object["status"] = map[string]any{
		"artifact": wanted,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "lastTransitionTime": now,
			"observedGeneration": found.GetGeneration(), "message": "stored artifact for revision '" + fmt.Sprint(wanted["revision"]) + "'",
		}},
	}
	return c.Live.Status().Update(ctx, found)
}

func (c *Controller) find(ctx context.Context, bundle *v1alpha1.Bundle) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(Kind)
	return found, c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), found)
}

func fresh(bundle *v1alpha1.Bundle) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceRef": map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Bundle", "name": bundle.Name, "namespace": bundle.Namespace,
	}}}}
	made.SetGroupVersionKind(Kind)
	made.SetNamespace(bundle.Namespace)
	made.SetName(bundle.Name)
	made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(bundle, v1alpha1.GroupVersion.WithKind("Bundle"))})
	return made
}

// remove takes back what is not asked for any more.
func (c *Controller) remove(ctx context.Context, bundle *v1alpha1.Bundle) error {
	found, err := c.find(ctx, bundle)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil || !metav1.IsControlledBy(found, bundle) {
		return err
	}
	return client.IgnoreNotFound(c.Live.Delete(ctx, found))
}

func (c *Controller) warn(bundle *v1alpha1.Bundle, reason, message string) {
	c.Recorder.Eventf(bundle, nil, corev1.EventTypeWarning, reason, "Publish", "%s", message)
}
