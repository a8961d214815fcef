// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/verify"
	"rukpak.io/rukpak/internal/verify/cosign"
	"rukpak.io/rukpak/internal/verify/notation"
)

// Verifier makes what judges signatures from what a source or a class asks for.
// Keys and roots are read in the namespace; for those of a class that is the
// manager's, which "" stands for. What is absent or cannot be read is a
// *source.Error: nothing is taken unjudged for the lack of it.
func (o *Opener) Verifier(ctx context.Context, asked v1alpha1.Verification, namespace, field string) (verify.Verifier, error) {
	read := material{opener: o, namespace: namespace, field: field}
	if namespace == "" {
		read.namespace = o.Namespace
	}
	made, err := read.verifier(ctx, asked)
	if err == nil {
		return made, nil
	}
	if judged, ok := errors.AsType[*source.Error](err); ok {
		return nil, judged
	}
	if wrong, ok := errors.AsType[*materialError](err); ok {
		return nil, &source.Error{Kind: source.Waiting, Reason: v1alpha1.ReasonVerificationInvalid, Err: wrong}
	}
	return nil, err // of the API server
}

// materialError says what is wrong with a key, a root or an identity.
type materialError struct{ text string }

func (e *materialError) Error() string { return e.text }

// material reads keys and roots.
type material struct {
	opener    *Opener
	namespace string
	field     string
}

func (m material) wrong(field string, err error) error {
	return &materialError{fmt.Sprintf("%s.%s: %v", m.field, field, err)}
}

func (m material) verifier(ctx context.Context, asked v1alpha1.Verification) (verify.Verifier, error) {
	switch {
	case asked.Cosign != nil && len(asked.Cosign.Keys) > 0:
		return m.byKeys(ctx, asked.Cosign.Keys)
	case asked.Cosign != nil && asked.Cosign.Keyless != nil:
		return m.byIdentities(ctx, asked.Cosign.Keyless)
	case asked.Notation != nil:
		return m.byCertificates(ctx, asked.Notation)
	default:
		return nil, m.wrong("cosign", errors.New("neither keys nor identities are given"))
	}
}

func (m material) byKeys(ctx context.Context, from []v1alpha1.TrustMaterial) (verify.Verifier, error) {
	var keys []cosign.Key
	for i, one := range from {
		field := fmt.Sprintf("cosign.keys[%d]", i)
		text, err := m.read(ctx, one, field)
		if err != nil {
			return nil, err
		}
		parsed, err := cosign.ParseKeys(text)
		if err != nil {
			return nil, m.wrong(field, err)
		}
		keys = append(keys, parsed...)
	}
	made, err := cosign.ByKeys(keys)
	if err != nil {
		return nil, m.wrong("cosign.keys", err)
	}
	return made, nil
}

func (m material) byIdentities(ctx context.Context, from *v1alpha1.CosignKeyless) (verify.Verifier, error) {
	var identities []cosign.Identity
	for _, one := range from.Identities {
		identities = append(identities, cosign.Identity(one))
	}
	trusted, err := m.read(ctx, from.TrustedRoot, "cosign.keyless.trustedRoot")
	if err != nil {
		return nil, err
	}
	made, err := cosign.ByIdentities(identities, trusted)
	if err != nil {
		return nil, m.wrong("cosign.keyless", err)
	}
	return made, nil
}

func (m material) byCertificates(ctx context.Context, from *v1alpha1.NotationVerification) (verify.Verifier, error) {
	trust := notation.Trust{Identities: from.TrustedIdentities}
	var err error
	if trust.Roots, err = m.certificates(ctx, from.Certificates, "notation.certificates"); err != nil {
		return nil, err
	}
	if trust.Timestamps, err = m.certificates(ctx, from.TimestampCertificates, "notation.timestampCertificates"); err != nil {
		return nil, err
	}
	made, err := notation.New(trust)
	if err != nil {
		return nil, m.wrong("notation", err)
	}
	return made, nil
}

func (m material) certificates(ctx context.Context, from []v1alpha1.TrustMaterial, list string) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for i, one := range from {
		field := fmt.Sprintf("%s[%d]", list, i)
		text, err := m.read(ctx, one, field)
		if err != nil {
			return nil, err
		}
		parsed, err := notation.ParseCertificates(text)
		if err != nil {
			return nil, m.wrong(field, err)
		}
		all = append(all, parsed...)
	}
	return all, nil
}

// read gives the text of a key or a root.
func (m material) read(ctx context.Context, from v1alpha1.TrustMaterial, field string) ([]byte, error) {
	text := []byte(from.Inline)
	var err error
	switch {
	case from.ConfigMapRef != nil:
		text, err = m.configMap(ctx, from.ConfigMapRef, field+".configMapRef")
	case from.SecretRef != nil:
		text, err = m.secret(ctx, from.SecretRef, field+".secretRef")
	}
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = m.wrong(field, errors.New("it is empty"))
	}
	return text, err
}

func (m material) configMap(ctx context.Context, ref *v1alpha1.KeyReference, field string) ([]byte, error) {
	found := &corev1.ConfigMap{}
	err := m.opener.Live.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: ref.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil, m.wrong(field, fmt.Errorf("ConfigMap %q does not exist in namespace %q", ref.Name, m.namespace))
	}
	if err != nil {
		return nil, err
	}
	if text, ok := found.Data[ref.Key]; ok {
		return []byte(text), nil
	}
	if data, ok := found.BinaryData[ref.Key]; ok {
		return data, nil
	}
	return nil, m.wrong(field, fmt.Errorf("ConfigMap %q in namespace %q has no key %q", ref.Name, m.namespace, ref.Key))
}

func (m material) secret(ctx context.Context, ref *v1alpha1.KeyReference, field string) ([]byte, error) {
	found, err := m.opener.readSecret(ctx, m.namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, m.wrong(field, fmt.Errorf("Secret %q does not exist in namespace %q", ref.Name, m.namespace)) //nolint:staticcheck // the name of a kind
	}
	if err != nil {
		return nil, err
	}
	if data, ok := found.Data[ref.Key]; ok {
		return data, nil
	}
	return nil, m.wrong(field, fmt.Errorf("Secret %q in namespace %q has no key %q", ref.Name, m.namespace, ref.Key)) //nolint:staticcheck // the name of a kind
}
