// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UploadSource is files that a user brought through the content API, as
// "rukpak upload" and "rukpak run" do.
type UploadSource struct {
	// digest of the files, as the upload was answered with. The upload must have
	// been made in the namespace of the Bundle. No other place has it: once the
	// content store has lost it, it has to be uploaded again.
	Digest Digest `json:"digest"`
}
