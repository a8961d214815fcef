// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// FluxSource is what a source object of Flux has fetched, in the same namespace.
type FluxSource struct {
	// kind of the object, of the group source.toolkit.fluxcd.io.
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository;Bucket;HelmChart;ExternalArtifact
	Kind FluxKind `json:"kind"`

	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// subPath is the folder of the artifact that is the content, as if it were
	// the root, such as "deploy/base".
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^/]+(/[^/]+)*$`
	SubPath string `json:"subPath,omitempty"`
}

// FluxKind is a kind of source object of Flux.
type FluxKind string
