// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/signing"
)

func byKey(pem string) v1alpha1.Verification {
	return v1alpha1.Verification{Cosign: &v1alpha1.CosignVerification{Keys: []v1alpha1.TrustMaterial{{Inline: pem}}}}
}

func ruleFor(match string, asked v1alpha1.Verification) *v1alpha1.ClassVerification {
	return &v1alpha1.ClassVerification{Rules: []v1alpha1.VerificationRule{{Match: []string{match}, Verify: asked}}}
}

func blobsAsked(s *stage) (asked int) {
	for _, r := range s.registry.Requests() {
		if r.Method == http.MethodGet && strings.Contains(r.Path, "/team/app/blobs/") {
			asked++
		}
	}
	return asked
}

func TestUnsignedContentIsNeitherFetchedNorUnpackedUntilItIsSigned(t *testing.T) {
	s := newStage(t)
	key := signing.Key(t)
	asked := byKey(signing.PEM(t, key))
	b := s.bundle(&asked)
	s.registry.ForgetRequests()
	if !s.act(b) {
		t.Error("it is not tried again, though a signature may be pushed")
	}
	s.refused(b, v1alpha1.ReasonSignatureMissing, "there is no signature (wanted: cosign, by the key sha256:")
	if n := blobsAsked(s); n > 0 {
		t.Errorf("%d blobs were fetched", n)
	}
	version := b.ResourceVersion
	s.act(b)
	if b.ResourceVersion != version {
		t.Error("a second look that finds the same writes the status")
	}
	s.place.PushSimple(t, s.content, signing.Simple(t, signing.Key(t), s.content))
	s.act(b)
	s.refused(b, v1alpha1.ReasonSignatureInvalid, "not by this key")
	s.place.PushSimple(t, s.content, signing.Simple(t, key, s.content))
	s.act(b)
	s.taken(b, 1)
	verdict := b.Status.Verification.Verdicts[0]
	if verdict.AskedBy != "source" || verdict.Method != "cosign key" || !strings.HasPrefix(verdict.Signer, "sha256:") || verdict.Signature == "" {
		t.Errorf("verdict: %+v", verdict)
	}
	version = b.ResourceVersion
	s.registry.ForgetRequests()
	s.act(b)
	if b.ResourceVersion != version || len(s.registry.Requests()) > 0 {
		t.Errorf("at rest it writes or asks: %v", s.registry.Requests())
	}
}

func TestFaultsOfTheRegistryAreSaidAsSuch(t *testing.T) {
	s := newStage(t)
	asked := byKey(signing.PEM(t, signing.Key(t)))
	for status, reason := range map[int]string{http.StatusUnauthorized: source.ReasonAuthenticationFailed, http.StatusInternalServerError: source.ReasonRegistryUnreachable} {
		b := s.bundle(&asked)
		s.registry.Faults.Add(fault.Rule{Path: regexp.MustCompile(`\.sig$`), Action: fault.Status(status)})
		if !s.act(b) {
			t.Error("it is not tried again")
		}
		s.refused(b, reason, "")
		s.registry.Faults.Clear()
	}
}

func TestKeysAreReadWhereTheyAreNamed(t *testing.T) {
	s := newStage(t)
	key := signing.Key(t)
	s.place.PushSimple(t, s.content, signing.Simple(t, key, s.content))
	fromMap := v1alpha1.Verification{Cosign: &v1alpha1.CosignVerification{Keys: []v1alpha1.TrustMaterial{{ConfigMapRef: &v1alpha1.KeyReference{Name: "keys", Key: "cosign.pub"}}}}}
	fromSecret := v1alpha1.Verification{Cosign: &v1alpha1.CosignVerification{Keys: []v1alpha1.TrustMaterial{{SecretRef: &v1alpha1.KeyReference{Name: "keys", Key: "cosign.pub"}}}}}
	ofSource, ofSecret := s.bundle(&fromMap), s.bundle(&fromSecret)
	s.act(ofSource)
	s.refused(ofSource, v1alpha1.ReasonVerificationInvalid, `spec.sources[0].oci.verify.cosign.keys[0].configMapRef: ConfigMap "keys" does not exist in namespace "`+s.namespace)
	s.configMap(s.namespace, "keys", "other", "x")
	s.act(ofSource)
	s.refused(ofSource, v1alpha1.ReasonVerificationInvalid, `has no key "cosign.pub"`)
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "keys"}, StringData: map[string]string{"cosign.pub": signing.PEM(t, key)}})
	s.act(ofSecret)
	s.taken(ofSecret, 1)

	// Those of a class are the manager's: no tenant can put one in its place.
	s.class(ruleFor(s.registry.Host(), fromMap))
	ofClass := s.bundle(nil)
	s.act(ofClass)
	s.refused(ofClass, v1alpha1.ReasonVerificationInvalid, `does not exist in namespace "`+s.own)
	s.configMap(s.own, "keys", "cosign.pub", "no key")
	s.act(ofClass)
	s.refused(ofClass, v1alpha1.ReasonVerificationInvalid, "no public key in PEM")
}

func TestClassThatWantsSignaturesFailsClosed(t *testing.T) {
	s := newStage(t)
	key, tenants := signing.Key(t), signing.Key(t)
	s.place.PushSimple(t, s.content, signing.Simple(t, tenants, s.content))
	inline := v1alpha1.BundleSource{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a.yaml": "x"}}}
	own := byKey(signing.PEM(t, tenants))
	team := s.registry.Host() + "/team/*"

	s.class(&v1alpha1.ClassVerification{})
	b := s.bundle(&own)
	if s.act(b) {
		t.Error("it is tried again, though only a change of the class can help")
	}
	s.refused(b, v1alpha1.ReasonVerificationNotConfigured, "none of its spec.verification.rules is about "+s.place.Repository)
	b = s.of(inline)
	s.act(b)
	s.refused(b, v1alpha1.ReasonVerificationNotConfigured, `a source of the kind "inline" cannot be`)

	asked := ruleFor(team, byKey(signing.PEM(t, key)))
	asked.ExemptKinds = []string{"inline"}
	s.class(asked)
	b = s.of(inline)
	s.act(b)
	s.taken(b, 0)
	b = s.bundle(&own)
	s.act(b)
	s.refused(b, v1alpha1.ReasonSignatureInvalid, "asked by class/"+s.namespace) // the tenant's own key is not enough
	s.place.PushSimple(t, s.content, signing.Simple(t, tenants, s.content), signing.Simple(t, key, s.content))
	s.act(b)
	s.taken(b, 2)

	// Pins cannot lead around a rule: what counts is what is fetched.
	elsewhere := strings.Replace(s.place.Repository, "/team/", "/other/", 1)
	s.push(elsewhere + ":1")
	b = &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "pinned"}, Spec: v1alpha1.BundleSpec{
		ProvisionerClassName: s.namespace,
		Sources:              []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: s.place.Repository + ":1", Insecure: true}}},
		Pins:                 []v1alpha1.ResolvedSource{{Ref: elsewhere + "@" + s.content.String(), Digest: v1alpha1.PinnedDigest(s.content)}},
	}}
	s.create(b)
	s.act(b)
	s.refused(b, v1alpha1.ReasonVerificationNotConfigured, elsewhere)
}

func TestClassThatRequiresNothingAsksOnlyWhereARuleIs(t *testing.T) {
	s := newStage(t)
	no := false
	asked := ruleFor(s.registry.Host()+"/else", byKey(signing.PEM(t, signing.Key(t))))
	asked.Required = &no
	s.class(asked)
	b := s.bundle(nil)
	s.act(b)
	s.taken(b, 0)
}

func TestTheLongestPrefixCounts(t *testing.T) {
	s := newStage(t)
	wide, narrow := signing.Key(t), signing.Key(t)
	s.class(&v1alpha1.ClassVerification{Rules: []v1alpha1.VerificationRule{
		{Match: []string{"*", s.registry.Host()}, Verify: byKey(signing.PEM(t, wide))},
		{Match: []string{s.registry.Host() + "/team"}, Verify: byKey(signing.PEM(t, narrow))},
	}})
	s.place.PushSimple(t, s.content, signing.Simple(t, wide, s.content))
	b := s.bundle(nil)
	s.act(b)
	s.refused(b, v1alpha1.ReasonSignatureInvalid, "")
	s.place.PushSimple(t, s.content, signing.Simple(t, narrow, s.content))
	s.act(b)
	s.taken(b, 1)
}

func TestAChangedClassJudgesReadyBundlesAnew(t *testing.T) {
	s := newStage(t)
	old, next := signing.Key(t), signing.Key(t)
	s.place.PushSimple(t, s.content, signing.Simple(t, old, s.content))
	s.class(ruleFor(s.registry.Host(), byKey(signing.PEM(t, old))))
	b := s.bundle(nil)
	s.act(b)
	s.taken(b, 1)
	had := *b.Status.Content
	s.class(ruleFor(s.registry.Host(), byKey(signing.PEM(t, next))))
	s.act(b)
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonSignatureInvalid || b.Status.Verification != nil {
		t.Errorf("signed by a key that is no longer trusted: %+v, %+v", ready, b.Status.Verification)
	}
	if diff := cmp.Diff(&had, b.Status.Content); diff != "" || !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionUnpacked) {
		t.Errorf("what was unpacked is no longer said to be: %s", diff)
	}
	s.place.PushSimple(t, s.content, signing.Simple(t, old, s.content), signing.Simple(t, next, s.content))
	s.act(b)
	s.taken(b, 1)
	s.class(nil)
	s.act(b)
	s.taken(b, 0)
}

func TestKeylessAndNotationThroughARegistry(t *testing.T) {
	s := newStage(t)
	sigstore, authority := signing.NewSigstore(t), signing.NewAuthority(t, "root")
	const subject, issuer = "https://github.com/example/app/.github/workflows/release.yaml@refs/heads/main", "https://token.actions.githubusercontent.com"
	s.configMap(s.namespace, "sigstore", "trusted_root.json", string(sigstore.TrustedRoot(t, signing.Parts{})))
	keyless := v1alpha1.Verification{Cosign: &v1alpha1.CosignVerification{Keyless: &v1alpha1.CosignKeyless{
		Identities:  []v1alpha1.SignerIdentity{{Issuer: issuer, SubjectRegExp: `https://github\.com/example/.+`}},
		TrustedRoot: v1alpha1.TrustMaterial{ConfigMapRef: &v1alpha1.KeyReference{Name: "sigstore", Key: "trusted_root.json"}},
	}}}
	notation := v1alpha1.Verification{Notation: &v1alpha1.NotationVerification{
		Certificates:      []v1alpha1.TrustMaterial{{Inline: authority.PEM()}},
		TrustedIdentities: []string{"x509.subject: C=US, ST=WA, O=example.com, CN=release"},
	}}
	byWorkflow, byNotation := s.bundle(&keyless), s.bundle(&notation)
	for _, b := range []*v1alpha1.Bundle{byWorkflow, byNotation} {
		s.act(b)
		s.refused(b, v1alpha1.ReasonSignatureMissing, "")
	}
	s.place.PushReferrer(t, s.content, signing.BundleType, nil,
		sigstore.KeylessBundle(t, signing.Keyless{Subject: "https://evil.example.com/https://github.com/example/app", Issuer: issuer}, s.content, signing.SignPredicate))
	s.act(byWorkflow)
	s.refused(byWorkflow, v1alpha1.ReasonIdentityMismatch, "evil.example.com")
	s.place.PushReferrer(t, s.content, signing.BundleType, nil,
		sigstore.KeylessBundle(t, signing.Keyless{Subject: subject, Issuer: issuer}, s.content, signing.SignPredicate))
	s.act(byWorkflow)
	s.taken(byWorkflow, 1)
	if got := byWorkflow.Status.Verification.Verdicts[0]; got.Signer != subject+" of "+issuer || got.SignedAt == nil {
		t.Errorf("verdict: %+v", got)
	}
	s.place.PushReferrer(t, s.content, signing.NotationType, nil, authority.Notation(t, "release", time.Now().Add(time.Hour),
		specs.Descriptor{MediaType: specs.MediaTypeImageManifest, Digest: s.content, Size: 1}, signing.COSE))
	s.act(byNotation)
	s.taken(byNotation, 1)
}
