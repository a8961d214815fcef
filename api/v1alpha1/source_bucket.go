// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// BucketSource is objects in an S3-compatible bucket: those of a folder as
// files, or one as an archive or a file.
// +kubebuilder:validation:XValidation:rule="self.endpoint.startsWith('https://') || (has(self.insecure) && self.insecure)",message="endpoint must be https://, or http:// with insecure"
// +kubebuilder:validation:XValidation:rule="!has(self.prefix) || !has(self.object)",message="at most one of prefix and object may be set"
// +kubebuilder:validation:XValidation:rule="has(self.object) || (!has(self.versionId) && !has(self.archive) && !has(self.mediaType) && !has(self.subPath))",message="versionId, archive, mediaType and subPath are about an object"
// +kubebuilder:validation:XValidation:rule="!has(self.archive) || self.archive != 'Never' || (!has(self.mediaType) && !has(self.subPath))",message="mediaType and subPath are about archives: they cannot be set with archive Never"
type BucketSource struct {
	// endpoint is the URL of the service, without the bucket, such as
	// "https://s3.eu-west-1.amazonaws.com" or "https://minio.example.com:9000".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9._:\[\]-]+/?$`
	Endpoint string `json:"endpoint"`

	// bucket is its name.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]$`
	Bucket string `json:"bucket"`

	// prefix is the folder whose objects are the content, such as "team-a/app".
	// Not set means the whole bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*$`
	Prefix string `json:"prefix,omitempty"`

	// object is the key of the one object that is the content.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^/\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^/\x00-\x1f\x7f])?$`
	Object string `json:"object,omitempty"`

	// versionId is the version of the object. Not set means the present one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	VersionID string `json:"versionId,omitempty"`

	// archive says what becomes of an object that is an archive: Auto, the
	// default, unpacks it, Never keeps it as one file.
	// +optional
	// +kubebuilder:validation:Enum=Auto;Never
	Archive ArchiveMode `json:"archive,omitempty"`

	// mediaType says what the object is, such as "application/x-tar+gzip". Not
	// set means that its first bytes do.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	MediaType string `json:"mediaType,omitempty"`

	// subPath is the folder of the archive that is the content, as if it were
	// the root.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^/]+(/[^/]+)*$`
	SubPath string `json:"subPath,omitempty"`

	// region of the bucket. Not set means that the service is asked.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`

	// insecure allows plain HTTP, if the endpoint says http://.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// secretRef names a Secret in this namespace with accessKey and secretKey,
	// perhaps sessionToken, and ca.crt to trust. Not set means that the bucket is
	// read by nobody in particular.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}
