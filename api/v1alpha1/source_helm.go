// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// HelmSource is a chart of a Helm repository.
// +kubebuilder:validation:XValidation:rule="self.repository.startsWith('https://') || self.repository.startsWith('oci://') || (has(self.insecure) && self.insecure)",message="repository must be https:// or oci://, or http:// with insecure"
// +kubebuilder:validation:XValidation:rule="!self.repository.startsWith('oci://') || (!has(self.secretRef) && !has(self.passCredentials))",message="for an oci:// repository set pullSecrets, not secretRef or passCredentials"
// +kubebuilder:validation:XValidation:rule="self.repository.startsWith('oci://') || !has(self.verify)",message="verify is for oci:// repositories"
type HelmSource struct {
	// repository is the URL of the folder that holds index.yaml, or "oci://" and
	// the place in a registry that holds charts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(https?|oci)://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~:/@!$&'()*+,;=%-]*)?$`
	Repository string `json:"repository"`

	// chart is its name in the repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`
	Chart string `json:"chart"`

	// version is one, such as "1.2.3", or a range of which the highest is
	// taken, such as ">=1.2.0 <2". Not set means the highest that is no
	// pre-release.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// insecure allows plain HTTP: where a URL says http://, or to the registry.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// secretRef names a Secret in this namespace with what the server of the
	// repository wants to see; the keys are those of the kind http.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// passCredentials sends the credentials also to other hosts that the index
	// names as the place of the chart.
	// +optional
	PassCredentials bool `json:"passCredentials,omitempty"`

	// pullSecrets name Secrets in this namespace of type
	// kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg, for a
	// repository in a registry, and for charts that an index says are in one.
	// They are tried before those of the service account.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	PullSecrets []LocalReference `json:"pullSecrets,omitempty"`

	// verify says whose signature a chart in a registry must have before anything
	// of it is fetched. What the class asks for is asked for too.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}
