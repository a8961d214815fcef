// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReceiverNotice is what a receiver of the class's approval.notify was told of a revision.
type ReceiverNotice struct {
	// receiver is its name in the class.
	// +kubebuilder:validation:MaxLength=63
	Receiver string `json:"receiver"`
	// address is a digest of the url and the revision's uid: of a class that
	// names another url, what waits is told again.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
	// told are the events that it has taken, as their ids end: the state, and
	// since when or, of what would be deleted, which digest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Told []string `json:"told,omitempty"`
	// problem is why it could not be told of the present state. It is tried again.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Problem string `json:"problem,omitempty"`
}
