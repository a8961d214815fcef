// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/watch"
	"rukpak.io/rukpak/provisioner"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Accounts gives clients that act as a service account.
type Accounts interface {
	Client(namespace, account string) (client.Client, error)
}

// Reviewer says what a service account lacks.
type Reviewer interface {
	// Missing gives a line for each permission that applying the phases needs
	// and the account lacks, sorted.
	Missing(ctx context.Context, namespace, account string, phases []provisioner.Phase) ([]string, error)
}

// Engine applies, prunes and tears down. See package activate.
type Engine interface {
	Apply(ctx context.Context, c client.Client, owner ownership.Owner, phases []provisioner.Phase, options activate.Options) activate.Result
	Prune(ctx context.Context, c client.Client, owner ownership.Owner, phases []provisioner.Phase, options activate.Options) activate.Result
	Teardown(ctx context.Context, c client.Client, owner ownership.Owner, phases []provisioner.Phase, options activate.Options) activate.Result
	Forget(owner ownership.Owner)
}

// Watcher keeps what is known about the objects. See package watch.
type Watcher interface {
	Use(owner ownership.Owner, kinds []schema.GroupVersionKind) error
	Release(owner types.UID)
	Get(id ownership.ID) (*metav1.PartialObjectMetadata, bool)
	Pending(owner types.UID) []watch.Pending
}

var _ Watcher = (*watch.Watcher)(nil)

// Options of a revision for the engine. earlier are the older revisions that
// may have objects.
func Options(revision *v1alpha1.InstanceRevision, earlier []*Loaded, alive ownership.Alive) activate.Options {
	return activate.Options{
		Adoption:          ownership.Adoption(revision.Spec.Adoption),
		Alive:             alive,
		RecreateImmutable: revision.Spec.RecreateImmutable,
		DefaultNamespace:  revision.Namespace,
		Earlier: func(id ownership.ID) []*unstructured.Unstructured {
			var found []*unstructured.Unstructured
			for _, loaded := range earlier {
				if object := loaded.find(id); object != nil {
					found = append(found, object)
				}
			}
			return found
		},
	}
}

func (c *Controller) options(ctx context.Context, revision *v1alpha1.InstanceRevision, earlier []*Loaded) activate.Options {
	return Options(revision, earlier, Alive(ctx, c.instances()))
}

// Alive tells whether an instance exists; where that cannot be told, it does. The reader has to know the instances of all
// namespaces.
func Alive(ctx context.Context, r client.Reader) ownership.Alive {
	return func(uid types.UID) bool {
		var list v1alpha1.BundleInstanceList
		if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return true
		}
		for i := range list.Items {
			if list.Items[i].UID == uid {
				return true
			}
		}
		return false
	}
}

// instances knows those of all namespaces. The cache of a manager that is confined to some does not.
func (c *Controller) instances() client.Reader {
	if c.Confined {
		return c.Live
	}
	return c.Client
}

// loadEarlier loads the revisions before the target that may have objects.
func (c *Controller) loadEarlier(ctx context.Context, w *work) ([]*Loaded, error) {
	var earlier []*Loaded
	for _, revision := range w.revisions {
		if revision == w.target || revision.Status.ActivatedAt == nil || is(revision, v1alpha1.ConditionSuperseded) {
			continue
		}
		loaded, err := c.Manifests.Load(ctx, revision)
		if lost(err) {
			continue // what it set on objects stays there; what it has besides is found by its mark
		}
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", revision.Spec.Number, err)
		}
		earlier = append(earlier, loaded)
	}
	return earlier, nil
}

// kinds of all objects that are to be watched.
func kinds(target *Loaded, earlier []*Loaded) []schema.GroupVersionKind {
	all := slices.Clone(target.Kinds)
	for _, loaded := range earlier {
		all = append(all, loaded.Kinds...)
	}
	return all
}

// outcome puts a result that is not complete into the words of a condition.
// retry is set when there are failures to try again, and nil when objects only
// need time, or tasks failed.
func outcome(result activate.Result) (reason, message string, retry error) {
	if failed := result.Reason(); failed != "" {
		for _, object := range result.Failed() {
			if object.Err.Reason != activate.TaskFailedReason {
				retry = result.Err()
			}
		}
		return string(failed), status.OneLine(result.String()), retry
	}
	return v1alpha1.ReasonWaitingForObjects, status.OneLine(result.String()), nil
}

// measure counts what was written.
func (c *Controller) measure(result activate.Result) {
	for _, action := range []activate.Action{activate.Created, activate.Applied, activate.Adopted, activate.Recreated, activate.Deleted} {
		c.Metrics.Objects(strings.ToLower(string(action)), result.Count(action))
	}
}

// kept says which objects a complete teardown left on purpose.
func kept(result activate.Result) string {
	var lines []string
	for _, object := range result.Objects {
		if object.Action == activate.Kept {
			lines = append(lines, object.ID.String()+": "+object.Note)
		}
	}
	if len(lines) == 0 {
		return "all objects are removed"
	}
	return fmt.Sprintf("all objects are removed but %d: %s", len(lines), strings.Join(lines, "; "))
}
