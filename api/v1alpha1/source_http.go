// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// HTTPSource is an archive or a file on a web server.
// +kubebuilder:validation:XValidation:rule="self.url.startsWith('https://') || (has(self.insecure) && self.insecure)",message="url must be https://, or http:// with insecure"
// +kubebuilder:validation:XValidation:rule="!has(self.archive) || self.archive != 'Never' || (!has(self.mediaType) && !has(self.subPath))",message="mediaType and subPath are about archives: they cannot be set with archive Never"
type HTTPSource struct {
	// url of the archive or file. It holds no credentials.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9._:\[\]-]+([/?][A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*)?$`
	URL string `json:"url"`

	// sha256 is what the bytes at the URL must have, as 64 hexadecimal digits.
	// Not set means that they are pinned to the one that they have when they
	// are first fetched.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-f0-9]{64}$`
	SHA256 string `json:"sha256,omitempty"`

	// archive says what becomes of an archive: Auto unpacks it, Never keeps it
	// as one file.
	// +optional
	// +kubebuilder:validation:Enum=Auto;Never
	// +kubebuilder:default=Auto
	Archive ArchiveMode `json:"archive,omitempty"`

	// mediaType says what is at the URL, such as "application/x-tar+gzip". Not
	// set means that its first bytes do: tar, plain or packed with gzip, zstd,
	// xz or bzip2, and zip are archives, and anything else is a file. What the
	// server says is not used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	MediaType string `json:"mediaType,omitempty"`

	// fileName is the path of what is no archive. Not set means the last part of
	// the URL's path.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	FileName string `json:"fileName,omitempty"`

	// subPath is the folder of the archive that is the content, as if it were
	// the root, such as "app-1.2.3/deploy".
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^/]+(/[^/]+)*$`
	SubPath string `json:"subPath,omitempty"`

	// insecure allows plain HTTP, if the URL says http://.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// secretRef names a Secret in this namespace with what the server wants to
	// see: username and password, or bearerToken, and headers with keys such as
	// header.Private-Token; ca.crt to trust, tls.crt and tls.key to show. It is
	// sent to the host of the URL only.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// ArchiveMode says what becomes of an archive.
type ArchiveMode string

// The modes.
const (
	ArchiveAuto  ArchiveMode = "Auto"
	ArchiveNever ArchiveMode = "Never"
)
