// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleSpec says which content a bundle holds and which class of provisioner understands it.
// +kubebuilder:validation:XValidation:rule="!has(self.pins) || size(self.pins) == size(self.sources)",message="pins must have one entry for each of sources"
type BundleSpec struct {
	// provisionerClassName names the ProvisionerClass that understands this
	// content. Not set means the default class, chosen when first needed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ProvisionerClassName string `json:"provisionerClassName,omitempty"`

	// sources say where the content comes from. Later ones are laid over
	// earlier ones: a file that several have is that of the last.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Sources []BundleSource `json:"sources"`

	// pins are what the sources mean, in their order. With them nothing is
	// resolved: the content is that of these digests. An instance that follows
	// its sources sets them; not set means that each source is resolved once.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Pins []ResolvedSource `json:"pins,omitempty"`

	// serviceAccountName names a service account in this namespace whose
	// imagePullSecrets are used too. Not set means the instance's service
	// account in a bundle that an instance embeds, and else "default".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BundleSource is one place that content comes from. Exactly one kind of source is set.
// +kubebuilder:validation:XValidation:rule="[has(self.oci), has(self.inline), has(self.configMap), has(self.secret), has(self.bundle), has(self.upload), has(self.flux), has(self.http), has(self.helm), has(self.git), has(self.bucket)].filter(set, set).size() == 1",message="exactly one kind of source must be set: oci, inline, configMap, secret, bundle, upload, flux, http, helm, git or bucket"
type BundleSource struct {
	// path is the folder of the bundle's content in which the files of this
	// source stand, such as "overlays/team-a". Not set means the root.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`
	Path string `json:"path,omitempty"`

	// oci is an artifact or image in an OCI registry.
	// +optional
	OCI *OCISource `json:"oci,omitempty"`

	// inline is files that are written in the Bundle itself.
	// +optional
	Inline *InlineSource `json:"inline,omitempty"`

	// configMap is a ConfigMap in this namespace; each key is a file.
	// +optional
	ConfigMap *ObjectSource `json:"configMap,omitempty"`

	// secret is a Secret in this namespace; each key is a file. Whoever may
	// read the Bundle's content can read them then.
	// +optional
	Secret *ObjectSource `json:"secret,omitempty"`

	// bundle is another Bundle in this namespace, or a folder of it.
	// +optional
	Bundle *BundleRefSource `json:"bundle,omitempty"`

	// upload is files that a user brought through the content API.
	// +optional
	Upload *UploadSource `json:"upload,omitempty"`

	// flux is what a source object of Flux in this namespace has fetched.
	// +optional
	Flux *FluxSource `json:"flux,omitempty"`

	// http is an archive or a file on a web server.
	// +optional
	HTTP *HTTPSource `json:"http,omitempty"`

	// git is the files of a commit in a git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// helm is a chart of a Helm repository.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`

	// bucket is objects in an S3-compatible bucket.
	// +optional
	Bucket *BucketSource `json:"bucket,omitempty"`
}

// OCISource is an artifact or image in an OCI registry.
// +kubebuilder:validation:XValidation:rule="!has(self.semver) || self.ref.matches('^([^@]*/)?[^/:@]+$')",message="ref has neither tag nor digest when semver is set"
// +kubebuilder:validation:XValidation:rule="!has(self.semverFilter) || has(self.semver)",message="semverFilter needs semver"
type OCISource struct {
	// ref names the artifact: "registry/repository:tag" or
	// "registry/repository@sha256:...". A tag is resolved to a digest once,
	// before anything is fetched, and never again.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref"`

	// semver is a range of versions, such as ">=1.2.0 <2", in place of a tag: the
	// tag with the highest version in it is taken. Only whole versions count,
	// with or without a "v"; pre-releases only if the range names one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Semver string `json:"semver,omitempty"`

	// semverFilter is a regular expression that tags have to match to be
	// considered, such as "-alpine$".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	SemverFilter string `json:"semverFilter,omitempty"`

	// platform chooses the entry of an index. Not set means Linux on the
	// architecture of the manager, or the only entry that there is.
	// +optional
	Platform *OCIPlatform `json:"platform,omitempty"`

	// referrer takes, in place of the artifact that ref names, one that refers to
	// it: an SBOM, a policy, an attestation. With platform set it is the entry of
	// the index that it refers to.
	// +optional
	Referrer *OCIReferrer `json:"referrer,omitempty"`

	// layers selects among the layers: those that any of these is about. Not
	// set means all.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Layers []LayerSelector `json:"layers,omitempty"`

	// config is the path of the file that the config blob becomes. Not set means
	// that it is left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Config string `json:"config,omitempty"`

	// insecure speaks plain HTTP to the registry, and only that. Without it
	// only HTTPS is spoken.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// pullSecrets name Secrets in this namespace of type
	// kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. They are
	// tried before those of the service account.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	PullSecrets []LocalReference `json:"pullSecrets,omitempty"`

	// verify says whose signature the artifact must have before anything of it
	// is fetched. What the class asks for is asked for too.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// BundleStatus says what the sources were resolved to and what content they hold.
type BundleStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// provisionerClassName is the class in use: that of the spec, or the
	// default class when it was first needed.
	// +optional
	ProvisionerClassName string `json:"provisionerClassName,omitempty"`

	// sources tell, in the order of spec.sources, what each was resolved to.
	// Once set, an entry never changes.
	// +optional
	// +listType=atomic
	Sources []ResolvedSource `json:"sources,omitempty"`

	// verification is the verdict on the signatures that class and sources ask
	// for. Nothing is fetched without it.
	// +optional
	Verification *BundleVerification `json:"verification,omitempty"`

	// content is the unpacked content.
	// +optional
	Content *BundleContent `json:"content,omitempty"`

	// conditions: Resolved (every source is pinned to a digest), Verified (every
	// signature that is asked for is there; absent when none is), Unpacked (the
	// content is in the store) and Ready (all of them).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResolvedSource is a source pinned to a digest.
type ResolvedSource struct {
	// ref is the full reference by digest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Ref string `json:"ref"`
	// digest is that of the manifest in the registry, of the commit, or of the
	// files.
	Digest PinnedDigest `json:"digest"`
	// subject is the digest of what ref refers to, if it was chosen as a referrer.
	// +optional
	Subject Digest `json:"subject,omitempty"`
	// version is the tag, branch or version that was chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
}

// PinnedDigest is what a source is pinned to: "sha256:" and 64 hexadecimal
// digits, or for a git commit "sha1:" and 40.
// +kubebuilder:validation:Pattern=`^(sha256:[a-f0-9]{64}|sha1:[a-f0-9]{40})$`
// +kubebuilder:validation:MaxLength=71
type PinnedDigest string

// BundleContent is a tree of files.
type BundleContent struct {
	// digest is computed over names, kinds, executable bits and contents of
	// all files: the same content has the same digest, however it is packed.
	Digest Digest `json:"digest"`
	// files is the number of files and links.
	Files int64 `json:"files"`
	// bytes is the size of all files, unpacked.
	Bytes int64 `json:"bytes"`
	// conflicts are files of a source that are hidden by a later one, up to 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Conflicts []ContentConflict `json:"conflicts,omitempty"`
	// conflictCount is the number of all such files.
	// +optional
	ConflictCount int64 `json:"conflictCount,omitempty"`
}

// ContentConflict is a file that two sources have, with different content.
type ContentConflict struct {
	// path of the file.
	Path string `json:"path"`
	// hidden is the index in spec.sources of the source whose file is not seen.
	Hidden int32 `json:"hidden"`
	// seen is the index of the source whose file is.
	Seen int32 `json:"seen"`
}

// Digest is a SHA-256 digest, "sha256:" and 64 hexadecimal digits. A tag is never a Digest.
// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
// +kubebuilder:validation:MaxLength=71
type Digest string

// Bundle names content, pins it to a digest and makes it readable. It makes
// nothing active: a BundleInstance does. Its spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=bun,categories=rukpak
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.status.provisionerClassName`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.sources[0].ref`
// +kubebuilder:printcolumn:name="Files",type=integer,JSONPath=`.status.content.files`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Content",type=string,priority=1,JSONPath=`.status.content.digest`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="name must be at most 63 characters: it becomes a label value"
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which content this is. It never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Bundle's spec cannot be changed; create another Bundle"
	Spec BundleSpec `json:"spec"`
	// status says what the sources were resolved to and what they hold.
	// +optional
	Status BundleStatus `json:"status,omitzero"`
}

// BundleList is a list of Bundle objects.
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}
