// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AnnotationPublish on a Bundle asks for its content to be published beside it,
// for others to take. PublishFlux is the one value: as an ExternalArtifact of
// Flux, of the same name.
const (
	AnnotationPublish = "rukpak.io/publish"
	PublishFlux       = "flux"
)
