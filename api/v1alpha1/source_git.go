// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// GitSource is the files of a commit in a git repository. At most one of branch,
// tag, semver and commit is set; without any it is what the repository's HEAD
// points at.
// +kubebuilder:validation:XValidation:rule="self.url.matches('^(https?://|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*@)?)([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?/[A-Za-z0-9._~%!$&()*+,;=:@/-]+$')",message="url must be https://host/path or ssh://user@host/path, without password, query or fragment; git@host:path is written ssh://git@host/path"
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || (has(self.insecure) && self.insecure)",message="url must be https:// or ssh://, or http:// with insecure"
// +kubebuilder:validation:XValidation:rule="!has(self.tagPrefix) || has(self.semver)",message="tagPrefix needs semver"
// +kubebuilder:validation:XValidation:rule="[has(self.branch), has(self.tag), has(self.semver), has(self.commit)].filter(set, set).size() <= 1",message="at most one of branch, tag, semver and commit may be set"
type GitSource struct {
	// url of the repository: "https://host/path" or "ssh://user@host/path". It
	// holds no password.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	URL string `json:"url"`

	// branch whose newest commit it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^-\s~^:?*\[\\][^\s~^:?*\[\\]*$`
	Branch string `json:"branch,omitempty"`

	// tag whose commit it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^-\s~^:?*\[\\][^\s~^:?*\[\\]*$`
	Tag string `json:"tag,omitempty"`

	// semver is a range of versions, such as ">=1.2.0 <2". The tag with the
	// highest version in it is used; tags that are not whole versions ("1.2.3" or
	// "v1.2.3") do not count.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Semver string `json:"semver,omitempty"`

	// tagPrefix is what the tags that semver looks at have before the version,
	// such as "charts/" in "charts/v1.2.3".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^-\s~^:?*\[\\][^\s~^:?*\[\\]*$`
	TagPrefix string `json:"tagPrefix,omitempty"`

	// commit is the name of a commit, 40 hexadecimal digits.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	Commit string `json:"commit,omitempty"`

	// subPath is the folder of the repository that is the content, as if it were
	// the root, such as "deploy/base". What is beside it does not matter.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^/]+(/[^/]+)*$`
	SubPath string `json:"subPath,omitempty"`

	// submodules are fetched too. Without it they are empty folders.
	// +optional
	Submodules bool `json:"submodules,omitempty"`

	// lfsPointers says what becomes of the pointers that Git LFS leaves in place of
	// large files: Refuse fails, Keep takes the pointers as content. The
	// files themselves are not fetched.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;Keep
	// +kubebuilder:default=Refuse
	LFSPointers LFSPointers `json:"lfsPointers,omitempty"`

	// insecure allows plain HTTP, if the URL says http://.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// secretRef names a Secret in this namespace. For HTTPS: username and
	// password, or bearerToken; ca.crt to trust. For SSH: identity, a private key,
	// with its passphrase in password if it has one, and known_hosts, which must
	// hold the server's key. It is sent to the host of the URL only.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// LFSPointers says what becomes of pointers of Git LFS.
type LFSPointers string

// What may become of them.
const (
	LFSPointersRefuse LFSPointers = "Refuse"
	LFSPointersKeep   LFSPointers = "Keep"
)
