// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
)

// demand is one signature that is asked for.
type demand struct {
	Source    int32                 `json:"source"`
	By        string                `json:"by"`
	Field     string                `json:"field"`
	Namespace string                `json:"namespace"` // of keys and roots; "" is the manager's
	Asked     v1alpha1.Verification `json:"asked"`
}

// demands lists the signatures that a bundle needs: those that its sources ask
// for themselves, and those of its class. A source can ask for more than its
// class, never for less.
func demands(bundle *v1alpha1.Bundle, class *v1alpha1.ProvisionerClass) ([]demand, error) {
	var all []demand
	for i := range bundle.Spec.Sources {
		if own := ownOf(&bundle.Spec.Sources[i]); own != nil {
			all = append(all, demand{
				Source: int32(i), By: "source", Namespace: bundle.Namespace, //nolint:gosec // there are at most 16 sources
				Field: fmt.Sprintf("spec.sources[%d].%s.verify", i, kindName(&bundle.Spec.Sources[i])), Asked: *own,
			})
		}
		ofClass, err := demandOf(bundle, class, i)
		if err != nil {
			return nil, err
		}
		if ofClass != nil {
			all = append(all, *ofClass)
		}
	}
	return all, nil
}

// demandOf is what the class asks of one source, which may be nothing.
func demandOf(bundle *v1alpha1.Bundle, class *v1alpha1.ProvisionerClass, i int) (*demand, error) {
	asked := class.Spec.Verification
	if asked == nil || i >= len(bundle.Status.Sources) {
		return nil, nil
	}
	if !inRegistry(&bundle.Spec.Sources[i]) {
		return nil, unsigned(bundle, class, i)
	}
	resolved := bundle.Status.Sources[i]
	ref, err := name.NewDigest(resolved.Ref)
	if err != nil {
		return nil, refused(i, v1alpha1.ReasonVerificationNotConfigured, fmt.Errorf("%q is no reference by digest", resolved.Ref))
	}
	rule, ok := ruleFor(asked.Rules, ref.Context().Name())
	if ok {
		return &demand{
			Source: int32(i), By: "class/" + class.Name, //nolint:gosec // there are at most 16 sources
			Field: fmt.Sprintf("ProvisionerClass %q: spec.verification.rules[%d].verify", class.Name, rule), Asked: asked.Rules[rule].Verify,
		}, nil
	}
	if !required(asked) || exempt(asked, &bundle.Spec.Sources[i]) {
		return nil, nil
	}
	return nil, refused(i, v1alpha1.ReasonVerificationNotConfigured,
		fmt.Errorf("ProvisionerClass %q wants every source signed, and none of its spec.verification.rules is about %s", class.Name, rules.Normal(ref.Context().Name())))
}

// unsigned refuses a source of a kind that cannot be signed, if the class wants
// every source signed and does not exempt the kind.
func unsigned(bundle *v1alpha1.Bundle, class *v1alpha1.ProvisionerClass, i int) error {
	asked, src := class.Spec.Verification, &bundle.Spec.Sources[i]
	if asked == nil || !required(asked) || inRegistry(src) || exempt(asked, src) {
		return nil
	}
	return refused(i, v1alpha1.ReasonVerificationNotConfigured,
		fmt.Errorf("ProvisionerClass %q wants every source signed, and a source of the kind %q cannot be; use oci, or have the kind listed in its spec.verification.exemptKinds", class.Name, kindName(src)))
}

// ownOf is what a source asks for itself.
func ownOf(src *v1alpha1.BundleSource) *v1alpha1.Verification {
	switch {
	case src.OCI != nil:
		return src.OCI.Verify
	case src.Helm != nil:
		return src.Helm.Verify
	}
	return nil
}

// inRegistry tells whether signatures can stand beside the content of a source.
func inRegistry(src *v1alpha1.BundleSource) bool {
	return src.OCI != nil || src.Helm != nil && strings.HasPrefix(src.Helm.Repository, "oci://")
}

// kindName is the field of the source that is set.
func kindName(src *v1alpha1.BundleSource) string {
	fields := map[string]json.RawMessage{}
	if encoded, err := json.Marshal(src); err == nil {
		_ = json.Unmarshal(encoded, &fields) // it was just marshalled
	}
	delete(fields, "path")
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

// ruleFor finds the rule whose prefix is the longest; of equals, the first.
func ruleFor(all []v1alpha1.VerificationRule, repository string) (index int, ok bool) {
	longest := 0
	for i, rule := range all {
		for _, prefix := range rule.Match {
			// A name of a registry goes before "*" and "*.example.com".
			weight := rules.Covers(prefix, repository)
			if weight > 0 && strings.HasPrefix(prefix, "*") {
				weight = 1
			}
			if weight > longest {
				longest, index = weight, i
			}
		}
	}
	return index, longest > 0
}

func required(asked *v1alpha1.ClassVerification) bool {
	return asked.Required == nil || *asked.Required
}

func exempt(asked *v1alpha1.ClassVerification, src *v1alpha1.BundleSource) bool {
	return slices.Contains(asked.ExemptKinds, kindName(src))
}

// refused makes an error that stays until class or spec change, which are watched.
func refused(i int, reason string, err error) error {
	return &source.Error{Kind: source.Terminal, Reason: reason, Err: fmt.Errorf("spec.sources[%d]: %w", i, err)}
}

// digestOf tells whether the same is asked for.
func digestOf(all []demand) v1alpha1.Digest {
	encoded, err := json.Marshal(all)
	if err != nil {
		encoded = fmt.Append(nil, all) // no field could fail to marshal
	}
	return v1alpha1.Digest(digest.FromBytes(encoded))
}

// judged tells whether a bundle's verdict is on what is asked for now.
func judged(bundle *v1alpha1.Bundle, class *v1alpha1.ProvisionerClass) bool {
	all, err := demands(bundle, class)
	if err != nil {
		return false
	}
	has := bundle.Status.Verification
	return len(all) == 0 && has == nil || has != nil && has.Asked == digestOf(all)
}
