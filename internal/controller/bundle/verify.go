// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/verify"
)

// signed is a source beside whose content signatures can stand.
type signed interface {
	Attached(ctx context.Context, pinned source.Pinned, query verify.Query) iter.Seq2[verify.Attachment, error]
}

// permit refuses, before anything is asked for, what the class does not let in
// without a signature and what cannot have one: some kinds of sources fetch
// their content to find its digest.
func (f *fetch) permit(context.Context) error {
	for i := range f.bundle.Spec.Sources {
		if err := unsigned(f.bundle, f.class, i); err != nil {
			return f.unverified(err)
		}
	}
	return nil
}

// verify judges the signatures of the pinned sources. Without a verdict nothing
// is fetched. A verdict is kept for as long as the same is asked for.
func (f *fetch) verify(ctx context.Context) error {
	all, err := demands(f.bundle, f.class)
	if err != nil {
		return f.unverified(err)
	}
	conditions := conditionsOf(f.bundle)
	if len(all) == 0 {
		f.bundle.Status.Verification = nil
		conditions.Remove(v1alpha1.ConditionVerified)
		return nil
	}
	if judged(f.bundle, f.class) {
		return nil
	}
	verdict := &v1alpha1.BundleVerification{Asked: digestOf(all)}
	for _, d := range all {
		one, err := f.judge(ctx, d)
		if err != nil {
			return f.unverified(err)
		}
		verdict.Verdicts = append(verdict.Verdicts, one)
	}
	f.bundle.Status.Verification = verdict
	conditions.True(v1alpha1.ConditionVerified, v1alpha1.ReasonVerified, verdictsMessage(verdict.Verdicts))
	return nil
}

// unverified records that there is no verdict.
func (f *fetch) unverified(err error) error {
	reason, _ := origin.Classify(err)
	f.bundle.Status.Verification = nil
	conditionsOf(f.bundle).False(v1alpha1.ConditionVerified, reason, err.Error())
	return err
}

func (f *fetch) judge(ctx context.Context, d demand) (v1alpha1.SourceVerdict, error) {
	verifier, err := f.controller.Sources.Verifier(ctx, d.Asked, d.Namespace, d.Field)
	if err != nil {
		return v1alpha1.SourceVerdict{}, err
	}
	recorded := f.bundle.Status.Sources[d.Source]
	place, ok := f.opened[d.Source].(signed)
	if !ok {
		return v1alpha1.SourceVerdict{}, refused(int(d.Source), v1alpha1.ReasonVerificationNotConfigured,
			fmt.Errorf("%s: a source of the kind %q cannot be signed", d.By, f.kinds[d.Source]))
	}
	content := digest.Digest(recorded.Digest)
	pinned := source.Pinned{Ref: recorded.Ref, Digest: content, Version: recorded.Version}
	found, err := verify.Find(ctx, verifier, content, place.Attached(ctx, pinned, verifier.Query(content)))
	if refusal, ok := errors.AsType[*verify.Refusal](err); ok {
		// A signature may be pushed later.
		return v1alpha1.SourceVerdict{}, &source.Error{Kind: source.Waiting, Reason: refusal.Reason,
			Err: fmt.Errorf("spec.sources[%d]: %s, asked by %s: %w", d.Source, recorded.Ref, d.By, refusal)}
	}
	if err != nil {
		return v1alpha1.SourceVerdict{}, err
	}
	return spell(d, found), nil
}

// spell is how the API spells a verdict.
func spell(d demand, found verify.Verdict) v1alpha1.SourceVerdict {
	one := v1alpha1.SourceVerdict{
		Source: d.Source, AskedBy: d.By, Method: found.Method, Signer: found.Signer, Signature: v1alpha1.Digest(found.Signature),
	}
	if !found.Time.IsZero() {
		at := metav1.NewTime(found.Time.UTC().Truncate(time.Second))
		one.SignedAt = &at
	}
	return one
}

func verdictsMessage(all []v1alpha1.SourceVerdict) string {
	lines := make([]string, len(all))
	for i, one := range all {
		lines[i] = fmt.Sprintf("source %d is signed by %s (%s), as %s asks", one.Source, one.Signer, one.Method, one.AskedBy)
	}
	return status.OneLine(strings.Join(lines, "; "))
}
