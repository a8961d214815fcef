// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// InlineSource is files that are written in the Bundle itself.
type InlineSource struct {
	// files by their path, such as "deploy/app.yaml".
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 512)",message="a path has at most 512 bytes"
	Files map[string]string `json:"files"`
}

// ObjectSource is the keys of a ConfigMap or Secret as files. They are read
// when the Bundle is resolved; another value later makes no other Bundle.
type ObjectSource struct {
	// name of the object, in the namespace of the Bundle.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// items says which keys are used, and the files they become. Not set means
	// all keys, each as a file of that name.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	Items []KeyToPath `json:"items,omitempty"`
}

// KeyToPath makes a file of a key.
type KeyToPath struct {
	// key of the object's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// path of the file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}
