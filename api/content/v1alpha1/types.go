// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is what the content API, content.rukpak.io/v1alpha1, answers
// with. It is served by an aggregated API server and stored nowhere, so these
// are plain documents: what a Bundle holds, read after the content store, and
// what an InstanceRevision would make active.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the content API.
var GroupVersion = schema.GroupVersion{Group: "content.rukpak.io", Version: "v1alpha1"}

// Resources of the content API; those of a Bundle and of an InstanceRevision
// stand below its name, as "bundles/web/files".
const (
	ResourceBundles   = "bundles"
	ResourceRevisions = "instancerevisions"
	ResourceUploads   = "uploads"

	Files           = "files"           // of a Bundle: the list, one file, or a folder of it
	Archive         = "archive"         // of a Bundle: all files in one
	Manifests       = "manifests"       // of an InstanceRevision: its objects, without data of Secrets
	SecretManifests = "secretmanifests" // of an InstanceRevision: its objects, all of them
	Diff            = "diff"            // of an InstanceRevision: its plan
)

// FileType says what a File is.
type FileType string

// The types of files.
const (
	TypeFile   FileType = "File"
	TypeFolder FileType = "Folder"
	TypeLink   FileType = "Link"
)

// File is one name in the content of a Bundle.
type File struct {
	// Path from the root of the content, separated by slashes.
	Path string   `json:"path"`
	Type FileType `json:"type"`
	// Mode is "0644", or "0755" for what can be executed. Folders and links have none.
	Mode string `json:"mode,omitempty"`
	// Size in bytes, of a file.
	Size int64 `json:"size"`
	// MediaType of a file as its name tells it, if it does.
	MediaType string `json:"mediaType,omitempty"`
	// Digest of the bytes of a file, "sha256:...".
	Digest string `json:"digest,omitempty"`
	// Target is what a link says.
	Target string `json:"target,omitempty"`
}

// FileList is what a Bundle, or a folder of it, holds, sorted by path.
type FileList struct {
	metav1.TypeMeta `json:",inline"`
	// ListMeta has the token for the next page in continue, if there is one.
	metav1.ListMeta `json:"metadata"`
	// Content is the digest of the whole content, as status.content.digest of
	// the Bundle. The same content gives the same list.
	Content string `json:"content"`
	Items   []File `json:"items"`
}

// Upload is the answer to an upload: what to name in a Bundle.
type Upload struct {
	metav1.TypeMeta `json:",inline"`
	// Digest is for the source of a Bundle in the same namespace:
	// {upload: {digest: ...}}. The same files have the same digest.
	Digest string `json:"digest"`
	// Files is the number of files and links.
	Files int64 `json:"files"`
	// Bytes is the size of all files.
	Bytes int64 `json:"bytes"`
}

// Task says of an item of the List that manifests and secretmanifests give that it is a task: it is run and not kept. The
// List has them in its field tasks.
type Task struct {
	Item  int      `json:"item"` // from 0
	Phase string   `json:"phase"`
	On    []string `json:"on"` // moments at which it is run, such as "Install"
}
