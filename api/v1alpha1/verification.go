// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionVerified is True when a Bundle has every signature that its class and
// its sources ask for. It is absent when nothing is asked for.
const ConditionVerified = "Verified"

// Reasons of Verified on a Bundle. Besides these there are those of the source:
// that a registry does not answer does not mean that there is no signature.
const (
	ReasonVerified                  = "Verified"                  // every signature that is asked for is there
	ReasonSignatureMissing          = "SignatureMissing"          // there is no signature
	ReasonSignatureInvalid          = "SignatureInvalid"          // no signature that is there counts
	ReasonIdentityMismatch          = "IdentityMismatch"          // a signature is sound, but by somebody else
	ReasonVerificationNotConfigured = "VerificationNotConfigured" // the class wants every source signed, and no rule is about this one
	ReasonVerificationInvalid       = "VerificationInvalid"       // keys, roots or identities are absent or cannot be read
)

// Verification says whose signature content must have. Exactly one kind of signature is set.
// +kubebuilder:validation:XValidation:rule="[has(self.cosign), has(self.notation)].filter(set, set).size() == 1",message="exactly one kind of signature must be set: cosign or notation"
type Verification struct {
	// cosign asks for a signature as cosign makes it.
	// +optional
	Cosign *CosignVerification `json:"cosign,omitempty"`

	// notation asks for a signature as notation makes it.
	// +optional
	Notation *NotationVerification `json:"notation,omitempty"`
}

// CosignVerification asks for a signature by a key, or by an identity.
// +kubebuilder:validation:XValidation:rule="has(self.keys) != has(self.keyless)",message="exactly one of keys and keyless must be set"
type CosignVerification struct {
	// keys are public keys. A signature by one of them is enough.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Keys []TrustMaterial `json:"keys,omitempty"`

	// keyless asks for a signature with a certificate that was issued to an
	// identity for the moment.
	// +optional
	Keyless *CosignKeyless `json:"keyless,omitempty"`
}

// CosignKeyless says which identities may have signed, and who attests them.
type CosignKeyless struct {
	// identities that may have signed. One of them is enough.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Identities []SignerIdentity `json:"identities"`

	// trustedRoot is a Sigstore trusted root in JSON: the authorities that issue
	// certificates and timestamps, and the logs. No other is trusted, and none
	// is fetched.
	TrustedRoot TrustMaterial `json:"trustedRoot"`
}

// SignerIdentity is one identity. Exactly one of subject and subjectRegExp is set.
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="exactly one of subject and subjectRegExp must be set"
type SignerIdentity struct {
	// issuer is the OpenID Connect issuer that vouches for the identity, such
	// as "https://token.actions.githubusercontent.com". It must be the same to
	// the letter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer"`

	// subject is the identity: a URL or an e-mail address. It must be the same
	// to the letter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Subject string `json:"subject,omitempty"`

	// subjectRegExp is a regular expression (RE2) that the whole identity must
	// match, from its first letter to its last.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// NotationVerification asks for a signature with a certificate that leads to a root.
type NotationVerification struct {
	// certificates are the roots, in PEM.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Certificates []TrustMaterial `json:"certificates"`

	// timestampCertificates are the roots of authorities that attest when a
	// signature was made, in PEM. Without them a signature counts as long as
	// its certificate is valid.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	TimestampCertificates []TrustMaterial `json:"timestampCertificates,omitempty"`

	// trustedIdentities are subjects of certificates, such as
	// "x509.subject: C=US, ST=WA, O=example.com, CN=release"; the attributes
	// that are given must be there. "*" means every certificate that leads to
	// one of the roots.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	TrustedIdentities []string `json:"trustedIdentities"`
}

// TrustMaterial is a public key, certificates or a trusted root. Exactly one place is set.
// +kubebuilder:validation:XValidation:rule="[has(self.inline), has(self.configMapRef), has(self.secretRef)].filter(set, set).size() == 1",message="exactly one of inline, configMapRef and secretRef must be set"
type TrustMaterial struct {
	// inline is the text itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`

	// configMapRef names a key of a ConfigMap: in the namespace of the Bundle,
	// and for a ProvisionerClass in that of the manager.
	// +optional
	ConfigMapRef *KeyReference `json:"configMapRef,omitempty"`

	// secretRef names a key of a Secret, in the same namespaces.
	// +optional
	SecretRef *KeyReference `json:"secretRef,omitempty"`
}

// KeyReference names a key of a ConfigMap or Secret.
type KeyReference struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// ClassVerification says whose signature the content of a class must have.
type ClassVerification struct {
	// required refuses every source that no rule is about. It is true unless set
	// to false; then rules hold for the repositories that they name, and others
	// need no signature.
	// +optional
	// +kubebuilder:default=true
	Required *bool `json:"required,omitempty"`

	// rules say whose signature is wanted, by repository. The one with the
	// longest fitting prefix counts.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Rules []VerificationRule `json:"rules,omitempty"`

	// exemptKinds are kinds of sources that need no signature although required
	// is true, such as "inline". Sources other than "oci" cannot be signed.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	ExemptKinds []string `json:"exemptKinds,omitempty"`
}

// VerificationRule says whose signature content of some repositories must have.
type VerificationRule struct {
	// match are prefixes of repositories, such as "registry.example.com/team/*"
	// or "registry.example.com"; "*.example.com" stands for every registry of a
	// domain, and "*" for all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	Match []string `json:"match"`

	// verify says whose signature is wanted.
	Verify Verification `json:"verify"`
}

// BundleVerification is the verdict on the signatures of a bundle's sources.
type BundleVerification struct {
	// asked is a digest over what the class and the sources ask for. When the
	// class asks for something else, the bundle is judged anew.
	Asked Digest `json:"asked"`

	// verdicts tell whose signatures count. A source that nothing is asked of
	// has none; one that class and source ask something of has two.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Verdicts []SourceVerdict `json:"verdicts,omitempty"`
}

// SourceVerdict is a signature that counts.
type SourceVerdict struct {
	// source is the index in spec.sources.
	Source int32 `json:"source"`
	// askedBy is "source", or "class/" and the name of the class.
	AskedBy string `json:"askedBy"`
	// method is the kind of signature: "cosign key", "cosign keyless" or "notation".
	Method string `json:"method"`
	// signer is the fingerprint of the key, or the identity in the certificate.
	Signer string `json:"signer"`
	// signature is the digest of the manifest that lists the signature.
	Signature Digest `json:"signature"`
	// signedAt is when the signature was made, where a trusted log or authority
	// attests it.
	// +optional
	SignedAt *metav1.Time `json:"signedAt,omitempty"`
}
