// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OCIPlatform chooses the entry of an index.
type OCIPlatform struct {
	// os is "linux" if it is not set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	OS string `json:"os,omitempty"`

	// architecture, such as "arm64". Not set means that of the manager.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Architecture string `json:"architecture,omitempty"`

	// variant, such as "v7". Not set means an entry without one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Variant string `json:"variant,omitempty"`
}

// LayerSelector is about the layers that have all of what it says.
// +kubebuilder:validation:XValidation:rule="has(self.mediaType) || has(self.title) || has(self.index)",message="at least one of mediaType, title and index must be set"
type LayerSelector struct {
	// mediaType of the layer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	MediaType string `json:"mediaType,omitempty"`

	// title is the name of the file that the layer is, as its annotation
	// org.opencontainers.image.title says.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Title string `json:"title,omitempty"`

	// index is the place among the layers, from 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Index *int32 `json:"index,omitempty"`
}

// OCIReferrer chooses among the artifacts that refer to another one. Of several
// the newest is taken, by their annotation org.opencontainers.image.created.
type OCIReferrer struct {
	// artifactType that it has, such as "application/spdx+json".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ArtifactType string `json:"artifactType"`

	// annotations that it has, all of them.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Annotations map[string]string `json:"annotations,omitempty"`
}
