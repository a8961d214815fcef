// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/source"
)

// maxConflicts is how many hidden files a status names.
const maxConflicts = 20

// fetch is the work on the sources of one bundle.
type fetch struct {
	controller *Controller
	bundle     *v1alpha1.Bundle
	class      *v1alpha1.ProvisionerClass
	to         source.Destination
	had        string // the class that the status names already
	opened     []source.Source
	kinds      []string
	sharedErr  error // why the shared store could not be asked
}

func (f *fetch) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{f.permit, f.open, f.resolve, f.verify, f.unpack} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetch) open(ctx context.Context) error {
	for i, spec := range f.bundle.Spec.Sources {
		opened, kind, err := f.controller.Sources.Open(ctx, spec, origin.Place{
			Namespace: f.bundle.Namespace, Bundle: f.bundle.Name, ServiceAccount: f.bundle.Spec.ServiceAccountName,
			Field: fmt.Sprintf("spec.sources[%d]", i),
		})
		if err != nil {
			return err
		}
		f.opened, f.kinds = append(f.opened, opened), append(f.kinds, kind)
	}
	return nil
}

// resolve pins the sources and records the digests before anything is fetched.
// What is recorded is never resolved again.
func (f *fetch) resolve(ctx context.Context) error {
	if len(f.bundle.Status.Sources) > 0 {
		return nil
	}
	resolved, err := f.pins(ctx)
	if err != nil {
		return err
	}
	before := f.bundle.DeepCopy()
	before.Status.ProvisionerClassName = f.had // the answer to the patch would take back what it does not hold
	f.bundle.Status.Sources = resolved
	message := resolvedMessage(f.bundle)
	conditions := conditionsOf(f.bundle)
	conditions.True(v1alpha1.ConditionResolved, v1alpha1.ReasonResolved, message)
	conditions.False(v1alpha1.ConditionUnpacked, v1alpha1.ReasonUnpacking, "the content is being fetched")
	conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonUnpacking, "the content is being fetched")
	if err := status.Patch(ctx, f.controller.Client, f.bundle, before); err != nil {
		return err
	}
	f.controller.Recorder.Eventf(f.bundle, nil, corev1.EventTypeNormal, v1alpha1.ReasonResolved, "Resolve", "%s", status.Note(message))
	return nil
}

// pins are those of the spec, or else what the sources mean now.
func (f *fetch) pins(ctx context.Context) ([]v1alpha1.ResolvedSource, error) {
	if len(f.bundle.Spec.Pins) > 0 {
		return f.bundle.Spec.Pins, nil
	}
	var resolved []v1alpha1.ResolvedSource
	for i, opened := range f.opened {
		pinned, err := opened.Resolve(ctx, f.to)
		if err != nil {
			f.controller.Metrics.Fetched(f.kinds[i], 0, err)
			return nil, f.of(i, err)
		}
		resolved = append(resolved, origin.Resolved(pinned))
	}
	return resolved, nil
}

// unpack brings the pinned content into the store and checks that it is what
// it was before, should it have been lost.
func (f *fetch) unpack(ctx context.Context) error {
	if f.sharedErr == nil && f.restore(ctx) {
		return nil
	}
	parts := make([]content.Part, len(f.opened))
	for i := range f.opened {
		layers, err := f.layers(ctx, i)
		if err != nil {
			return err
		}
		parts[i] = content.Part{Path: f.bundle.Spec.Sources[i].Path, Layers: layers}
	}
	assembly, err := content.Assemble(parts)
	if err != nil {
		return source.Classify("spec.sources", err)
	}
	tree, err := f.to.Session.PutAssembly(assembly)
	if err == nil {
		err = f.to.Budget.Tree(tree)
	}
	if err != nil {
		return source.Classify("spec.sources", err)
	}
	if tree.Files == 0 {
		return &source.Error{Kind: source.Terminal, Reason: source.ReasonEmptyContent, Err: fmt.Errorf("%s: there is no file in it", resolvedMessage(f.bundle))}
	}
	return f.record(tree, assembly.Conflicts)
}

func (f *fetch) layers(ctx context.Context, i int) ([]content.Layer, error) {
	recorded := f.bundle.Status.Sources[i]
	layers, stats, err := f.opened[i].Fetch(ctx,
		source.Pinned{Ref: recorded.Ref, Digest: digest.Digest(recorded.Digest), Version: recorded.Version}, f.to)
	f.controller.Metrics.Fetched(f.kinds[i], stats.Bytes, err)
	return layers, f.of(i, err)
}

// of says which of several sources an error is about.
func (f *fetch) of(i int, err error) error {
	field := fmt.Sprintf("spec.sources[%d]", i)
	if err == nil || len(f.opened) == 1 || strings.Contains(err.Error(), field) {
		return err
	}
	return fmt.Errorf("%s: %w", field, err)
}

func (f *fetch) record(tree content.Tree, conflicts []content.Conflict) error {
	got := v1alpha1.BundleContent{Digest: v1alpha1.Digest(tree.Digest), Files: int64(tree.Files), Bytes: tree.Bytes, ConflictCount: int64(len(conflicts))}
	for _, c := range conflicts[:min(len(conflicts), maxConflicts)] {
		got.Conflicts = append(got.Conflicts, v1alpha1.ContentConflict{
			Path: c.Path, Hidden: int32(c.Lower), Seen: int32(c.Upper), //nolint:gosec // there are at most 16 sources
		})
	}
	if had := f.bundle.Status.Content; had != nil && had.Digest != got.Digest {
		return &source.Error{Kind: source.Waiting, Reason: source.ReasonContentMismatch,
			Err: fmt.Errorf("the content is now %s, but before it was %s; make a new Bundle to use it", got.Digest, had.Digest)}
	}
	f.bundle.Status.Content = &got
	return nil
}

func resolvedMessage(bundle *v1alpha1.Bundle) string {
	refs := make([]string, len(bundle.Status.Sources))
	for i, resolved := range bundle.Status.Sources {
		refs[i] = resolved.Ref
	}
	return status.OneLine("resolved to " + strings.Join(refs, ", "))
}

func contentMessage(of *v1alpha1.BundleContent) string {
	message := plural.Of(of.Files, "file") + ", " + plural.Of(of.Bytes, "byte")
	if of.ConflictCount > 0 {
		first := of.Conflicts[0]
		message += fmt.Sprintf("; later sources hide %s of earlier ones, such as %q of spec.sources[%d], which spec.sources[%d] has too",
			plural.Of(of.ConflictCount, "path"), first.Path, first.Hidden, first.Seen)
	}
	return message
}
