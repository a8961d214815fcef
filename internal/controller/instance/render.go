// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cluster"
	"rukpak.io/rukpak/internal/controller/class"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/provisioner"
)

// maxNotes is the longest text of a provisioner that a revision keeps, in bytes.
const maxNotes = 4096

// Contents opens unpacked content by digest.
type Contents interface {
	// Open gives the read-only tree. The error is fs.ErrNotExist when the
	// store has lost it; the bundle controller then fetches it again.
	Open(ctx context.Context, tree digest.Digest) (fs.FS, error)
	// Lost tells the bundle controller that a bundle's content is gone.
	Lost(bundle types.NamespacedName)
}

// Scopes gives every namespaced object a namespace.
type Scopes interface {
	// Namespaced sets the namespace of objects that need one and name none.
	// Kinds are known from the API server and from CRDs among the objects.
	Namespaced(ctx context.Context, phases []provisioner.Phase, namespace string) error
}

// Provisioners finds the provisioners.
type Provisioners interface {
	// Find gives the provisioner of an ID, also if nobody serves it: then it says so when it is asked, with a
	// *remote.NobodyError. One that is not part of the manager answers with a *remote.PendingError before it has rendered.
	Find(id string) provisioner.Provisioner
	// OnInstance has wake called for an instance that got one of these and may go on now. wake does not block.
	OnInstance(wake func(types.NamespacedName))
}

// Facts says what the cluster is like.
type Facts interface {
	Cluster(ctx context.Context) (provisioner.Cluster, error)
}

// errTurn says that other instances of the namespace are rendered now, as many as leaves room for those of others: content
// can take minutes.
var errTurn = errors.New("it waits for its turn to be rendered")

// rendering is what a revision keeps.
type rendering struct {
	bytes       []byte
	digest      v1alpha1.Digest
	notes       string
	varies      []string
	provisional v1alpha1.Digest // see InstanceRevisionStatus.ProvisionalFor
}

// render turns the content and the configuration into the manifests of the revision with a number. What is rendered again
// for a revision that is there has its number, or other bytes would come of that alone.
func (c *Controller) render(ctx context.Context, w *work, number int64) (*rendering, error) {
	done, ok := c.turns.Take(client.ObjectKeyFromObject(w.instance))
	if !ok {
		return nil, errTurn
	}
	defer done()
	tree, err := c.Contents.Open(ctx, digest.Digest(w.bundle.Status.Content.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		c.Contents.Lost(types.NamespacedName{Namespace: w.bundle.Namespace, Name: w.bundle.Name})
		return nil, &Hold{
			Reason: v1alpha1.ReasonBundleNotReady, Retry: true,
			Message: fmt.Sprintf("the content of Bundle %q is no longer in the store; it is fetched again", w.bundle.Name),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the content of Bundle %q: %w", w.bundle.Name, err)
	}
	facts, err := c.Facts.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	provisional, err := c.provisionalFor(ctx, w, facts) // before it is rendered: what becomes ready meanwhile has to count
	if err != nil {
		return nil, err
	}
	result, err := c.run(ctx, w, tree, facts, number)
	if err != nil {
		return nil, refusal(w, err)
	}
	if err := c.Scopes.Namespaced(ctx, result.Phases, w.instance.Namespace); err != nil {
		return nil, refusal(w, err)
	}
	set := manifest.Set{Phases: result.Phases}
	if result.Nothing {
		set.Content = digest.Digest(w.bundle.Status.Content.Digest)
	}
	encoded, err := set.Encode()
	if err != nil {
		return nil, refusal(w, err)
	}
	return &rendering{
		bytes: encoded, digest: v1alpha1.Digest(manifest.DigestOf(encoded)), notes: cutTo(result.Notes, maxNotes),
		varies: lines(result.Varies), provisional: provisional,
	}, nil
}

func (c *Controller) run(ctx context.Context, w *work, tree fs.FS, facts provisioner.Cluster, number int64) (provisioner.Result, error) {
	served := c.Provisioners.Find(w.class.Spec.Provisioner)
	parameters := class.Parameters(w.class)
	if err := served.Validate(ctx, tree, parameters); err != nil {
		return provisioner.Result{}, err
	}
	as, err := c.Accounts.Client(w.instance.Namespace, w.account)
	if err != nil {
		return provisioner.Result{}, err
	}
	return served.Render(ctx, provisioner.Request{
		Instance:   types.NamespacedName{Namespace: w.instance.Namespace, Name: w.instance.Name},
		Content:    tree,
		Parameters: parameters,
		Config:     w.config,
		Revision:   number,
		Upgrade:    slices.ContainsFunc(w.revisions, wasActive),
		Origins:    originsOf(w.bundle),
		Cluster:    facts,
		Reader:     accountReader{cluster.Reader(as), w.account},
	})
}

// accountReader says as whom it reads, so that what was rendered with what one account may read is not taken for another's.
type accountReader struct {
	provisioner.Reader
	account string
}

// String is the name of the account.
func (r accountReader) String() string { return r.account }

// refusal classifies a rendering error: bad input stays bad until the spec
// changes, an unknown kind may yet be served, all else is tried again.
func refusal(w *work, err error) error {
	var held *Hold
	if errors.As(err, &held) {
		return held
	}
	if waits := awaited(w, err); waits != nil {
		return waits
	}
	var unknown *manifest.UnknownKindError
	if errors.As(err, &unknown) {
		return &Hold{Reason: v1alpha1.ReasonUnknownKind, Message: err.Error(), Retry: true}
	}
	if provisioner.IsConfigError(err) {
		return &Hold{Reason: v1alpha1.ReasonInvalidConfig, Message: status.OneLine(err.Error())}
	}
	if provisioner.IsInputError(err) {
		return &Hold{Reason: v1alpha1.ReasonInvalidContent, Message: status.OneLine(err.Error())}
	}
	return &Hold{
		Reason: v1alpha1.ReasonRenderFailed, Retry: true,
		Message: fmt.Sprintf("render Bundle %q: %v", w.bundle.Name, err),
	}
}

// awaited is a hold that ends when a provisioner outside of the manager is served, or has answered: see OnInstance.
func awaited(w *work, err error) *Hold {
	var nobody *remote.NobodyError
	var pending *remote.PendingError
	switch {
	case errors.As(err, &nobody):
		return &Hold{Reason: v1alpha1.ReasonProvisionerNotFound, Message: fmt.Sprintf("ProvisionerClass %q: %v", w.class.Name, err)}
	case errors.As(err, &pending):
		return &Hold{Reason: v1alpha1.ReasonRendering, Message: fmt.Sprintf("ProvisionerClass %q: %v", w.class.Name, err), Busy: true}
	}
	return nil
}

// store keeps the manifests of a revision. It may be repeated. The status goes first: what has its manifests is taken as
// rendered, and all that is known of the rendering has to be there by then.
func (c *Controller) store(ctx context.Context, revision *v1alpha1.InstanceRevision, rendered *rendering) error {
	record := func(r *v1alpha1.InstanceRevision) {
		r.Status.Notes, r.Status.Varies, r.Status.ProvisionalFor = rendered.notes, rendered.varies, rendered.provisional
	}
	if err := c.write(ctx, revision, record); err != nil {
		return err
	}
	if err := manifest.Save(ctx, c.Client, revision, manifest.KindManifest, rendered.bytes); err != nil {
		return fmt.Errorf("keep the manifests of InstanceRevision %q: %w", revision.Name, err)
	}
	return nil
}

// manifestsOf reads the manifests of a kept revision.
func (c *Controller) manifestsOf(ctx context.Context, revision *v1alpha1.InstanceRevision) (*rendering, error) {
	encoded, err := manifest.LoadVerified(ctx, c.Live, revision.Namespace, revision.Name, digest.Digest(revision.Spec.ManifestDigest))
	if err != nil {
		return nil, &Hold{Reason: v1alpha1.ReasonManifestCorrupt, Retry: true, Message: err.Error()}
	}
	return &rendering{bytes: encoded, digest: revision.Spec.ManifestDigest, notes: revision.Status.Notes, varies: revision.Status.Varies}, nil
}

func raw(extension *runtime.RawExtension) json.RawMessage {
	if extension == nil {
		return nil
	}
	return extension.Raw
}

func cutTo(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\ufffd") // as it is read back
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-4], "") + " ..."
}

// The longest list of what varies that a revision keeps, and the longest line of it.
const (
	maxVaries = 20
	maxLine   = 256
)

// lines cuts a list to what a status holds.
func lines(all []string) []string {
	if len(all) > maxVaries {
		all = append(slices.Clone(all[:maxVaries-1]), fmt.Sprintf("and %d more", len(all)-maxVaries+1))
	}
	var out []string
	for _, line := range all {
		out = append(out, cutTo(status.OneLine(line), maxLine))
	}
	return out
}
