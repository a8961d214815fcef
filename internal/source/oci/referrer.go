// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/source"
)

// Referrer says which of the artifacts that refer to another one is meant.
type Referrer struct {
	ArtifactType string
	Annotations  map[string]string // all of which it has
}

func (r *Referrer) String() string {
	text := "type " + r.ArtifactType
	if len(r.Annotations) > 0 {
		text += " with the annotations asked for"
	}
	return text
}

// referrer pins the artifact that refers to what a reference names now. The list
// of what refers to something is unsigned words of a registry, or of whoever
// pushed a tag, so the manifest itself has to say the same.
func (f *Fetcher) referrer(ctx context.Context, src Source, ref name.Reference, pinned source.Pinned) (source.Pinned, error) {
	subject, err := f.subject(ctx, src, ref.Context().Digest(pinned.Digest.String()))
	if err != nil {
		return source.Pinned{}, f.classify(ctx, src, ref, err)
	}
	chosen, err := f.referring(ctx, src, subject)
	if err != nil {
		return source.Pinned{}, f.classify(ctx, src, subject, err)
	}
	pinned.Ref, pinned.Digest = repositoryOf(ref)+"@"+chosen.String(), chosen
	pinned.Subject = digest.Digest(subject.DigestStr())
	return pinned, nil
}

// subject is what the artifact has to refer to: what the reference names, or of
// an index, if the source says a platform, the entry for that.
func (f *Fetcher) subject(ctx context.Context, src Source, ref name.Digest) (name.Digest, error) {
	if src.Platform == nil {
		return ref, nil
	}
	entry := ref
	_, err := f.ask(ctx, src, ref, func(ctx context.Context, puller *remote.Puller, there name.Reference) error {
		got, err := puller.Get(ctx, there.Context().Digest(ref.DigestStr()))
		if err != nil {
			return err
		}
		doc, index, err := parseDocument(got.Manifest, string(got.MediaType))
		if err != nil {
			return failed(source.Terminal, source.ReasonUnsupportedMediaType, ref, err)
		}
		if !index {
			return failed(source.Terminal, source.ReasonNoPlatform, ref, errors.New("platform is set, and it is no index"))
		}
		chosen, err := f.chooseFor(src, doc.Manifests)
		if err != nil {
			return failed(source.Terminal, source.ReasonNoPlatform, ref, err)
		}
		entry = ref.Context().Digest(chosen.String())
		return nil
	})
	return entry, err
}

// referring asks each endpoint in turn. One that has none does not end it: a
// mirror often carries an image without what refers to it.
func (f *Fetcher) referring(ctx context.Context, src Source, subject name.Digest) (digest.Digest, error) {
	hops, err := f.route(ctx, src, subject)
	if err != nil {
		return "", err
	}
	missed := &missedError{}
	for _, h := range hops {
		found, err := f.referringAt(ctx, h, src.Referrer, subject)
		if err == nil {
			return found, nil
		}
		missed.add(h, err)
		if ctx.Err() != nil {
			break
		}
	}
	return "", missed.result()
}

func (f *Fetcher) referringAt(ctx context.Context, h *hop, wanted *Referrer, subject name.Digest) (digest.Digest, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*f.options.StallTimeout)
	defer cancel()
	client, err := f.enter(ctx, h, subject)
	if err != nil {
		return "", err
	}
	listed, err := client.referrers(ctx, subject.DigestStr())
	if unfit(err) {
		return "", failed(source.Waiting, source.ReasonRegistryError, subject, err)
	}
	if err != nil {
		return "", err
	}
	chosen, err := wanted.choose(listed)
	if err != nil {
		return "", failed(source.Waiting, source.ReasonNotFound, subject, err)
	}
	return chosen, client.refersTo(ctx, chosen, wanted, subject)
}

// choose picks the one that is wanted; of several, the newest, as far as they
// tell when they were made.
func (r *Referrer) choose(listed []specs.Descriptor) (digest.Digest, error) {
	found := map[digest.Digest]specs.Descriptor{}
	for _, d := range listed {
		if d.ArtifactType == r.ArtifactType && hasAll(d.Annotations, r.Annotations) && sound(d.Digest) {
			found[d.Digest] = d
		}
	}
	var candidates []specs.Descriptor
	for _, d := range found {
		candidates = append(candidates, d)
	}
	slices.SortFunc(candidates, func(a, b specs.Descriptor) int {
		return cmp.Or(created(b).Compare(created(a)), strings.Compare(a.Digest.String(), b.Digest.String()))
	})
	switch {
	case len(candidates) == 0:
		return "", fmt.Errorf("no artifact of %s refers to it (those that do: %s)", r, typesOf(listed))
	case len(candidates) > 1 && (created(candidates[1]).Equal(created(candidates[0])) || created(candidates[len(candidates)-1]).IsZero()):
		return "", fmt.Errorf("%d artifacts of %s refer to it, and they do not tell which is the newest (%s, %s); "+
			"set annotations that only one has, or ref to its digest", len(candidates), r, candidates[0].Digest, candidates[1].Digest)
	}
	return candidates[0].Digest, nil
}

func sound(d digest.Digest) bool { return d.Validate() == nil && d.Algorithm() == digest.SHA256 }

func hasAll(has, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := has[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// created is when an artifact says that it was made; zero if it does not.
func created(d specs.Descriptor) time.Time {
	at, err := time.Parse(time.RFC3339, d.Annotations[specs.AnnotationCreated])
	if err != nil {
		return time.Time{}
	}
	return at
}

// typesOf lists the types of artifacts, sorted.
func typesOf(listed []specs.Descriptor) string {
	var types []string
	for _, d := range listed {
		types = append(types, cmp.Or(d.ArtifactType, "without a type"))
	}
	slices.Sort(types)
	if types = slices.Compact(types); len(types) > maxShown {
		types = append(types[:maxShown], fmt.Sprintf("%d more", len(types)-maxShown))
	}
	return cmp.Or(strings.Join(types, ", "), "none")
}

// refersTo reads the manifest of an artifact, which has to be what the list said.
func (c *client) refersTo(ctx context.Context, chosen digest.Digest, wanted *Referrer, subject name.Digest) error {
	ref := subject.Context().Digest(chosen.String())
	unlike := func(text string) error {
		return failed(source.Waiting, source.ReasonContentMismatch, ref, errors.New(text))
	}
	data, err := c.byDigest(ctx, "manifests", chosen)
	if unfit(err) {
		return unlike(err.Error())
	}
	if absent(err) {
		return failed(source.Waiting, source.ReasonNotFound, ref, fmt.Errorf("it is listed as referring to %s, and is not there", subject.DigestStr()))
	}
	if err != nil {
		return err
	}
	var manifest struct {
		attachedManifest
		Subject     specs.Descriptor  `json:"subject"`
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return unlike("it is listed as an artifact, and its manifest is no JSON")
	}
	kind := cmp.Or(manifest.ArtifactType, manifest.Config.MediaType)
	switch {
	case manifest.Subject.Digest.String() != subject.DigestStr():
		return unlike(fmt.Sprintf("it is listed as referring to %s, and its manifest does not", subject.DigestStr()))
	case kind != wanted.ArtifactType:
		return unlike(fmt.Sprintf("it is listed with the type %s, and its manifest says %.80q", wanted.ArtifactType, kind))
	case !hasAll(manifest.Annotations, wanted.Annotations):
		return unlike("it is listed with annotations that its manifest does not have")
	}
	return nil
}
