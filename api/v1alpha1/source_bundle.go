// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// BundleRefSource is the content of another Bundle in the same namespace.
type BundleRefSource struct {
	// name of the other Bundle. It need not exist yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// subPath is the folder of its content that is used, such as "deploy/base".
	// Not set means all of it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || (!self.startsWith('/') && !self.split('/').exists(part, part in ['', '.', '..']))",message="a sub path is relative and has no empty parts, no . and no .."
	SubPath string `json:"subPath,omitempty"`
}
