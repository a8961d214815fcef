// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds RukPak's kinds: ProvisionerClass, Bundle,
// BundleInstance, InstanceRevision and Approval, with the condition types and
// reasons that their controllers set. It is the lowest layer: every step of
// the way that content takes speaks in these terms, and it imports apimachinery
// only, so that clients and policy controllers can import it cheaply.
//
// +kubebuilder:object:generate=true
// +groupName=rukpak.io
package v1alpha1
