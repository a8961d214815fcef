// SPDX-License-Identifier: Apache-2.0

package imgpkg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	kjson "sigs.k8s.io/json"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

const (
	lockDir      = ".imgpkg"
	lockFile     = "images.yml"
	lockVersion  = "imgpkg.carvel.dev/v1alpha1"
	lockKind     = "ImagesLock"
	idAnnotation = "kbld.carvel.dev/id" // the reference that the configuration has
)

// lock maps the references of the configuration, in full, to the images that are meant.
type lock struct {
	file   string
	images []locked
}

type locked struct {
	ids   []string // references that stand for the image, in full
	image name.Digest
}

// lockFolder is the one .imgpkg of the content.
func lockFolder(found parse.Files) (string, error) {
	var folders []string
	for _, hidden := range found.Hidden {
		if path.Base(hidden) == lockDir {
			folders = append(folders, hidden)
		}
	}
	switch len(folders) {
	case 1:
		return folders[0], nil
	case 0:
		return "", &provisioner.InputError{Reason: "there is no folder .imgpkg, so it is no bundle of imgpkg: choose a class whose provisioner renders what the content is"}
	}
	return "", refuse(folders[1], "there is %s already, and a bundle has one: make two bundles of them", folders[0])
}

// readLock reads the lock as strictly as imgpkg does.
func readLock(ctx context.Context, content fs.FS, folder string) (lock, error) {
	file := path.Join(folder, lockFile)
	var read struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Images     []struct {
			Image       string                     `json:"image"`
			Annotations map[string]json.RawMessage `json:"annotations"`
		} `json:"images"`
	}
	found, err := decodeFile(ctx, content, file, &read)
	switch {
	case err != nil:
		return lock{}, err
	case !found:
		return lock{}, refuse(file, "is not there, and a bundle of imgpkg has one, also without images: make it with kbld --imgpkg-lock-output")
	case read.APIVersion != lockVersion || read.Kind != lockKind:
		return lock{}, refuse(file, "is %s %s, and not %s %s", read.APIVersion, read.Kind, lockVersion, lockKind)
	}
	images := lock{file: file}
	var faults []*provisioner.InputError
	for i, one := range read.Images {
		digest, err := name.NewDigest(one.Image)
		if err != nil {
			faults = append(faults, refuse(file, "images[%d].image %q is no reference by digest, such as registry.example/app@sha256:...: lock it again", i, one.Image))
			continue
		}
		entry := locked{image: digest, ids: []string{digest.Name()}}
		if raw, has := one.Annotations[idAnnotation]; has {
			var id string
			if json.Unmarshal(raw, &id) != nil || full(id) == "" {
				faults = append(faults, refuse(file, "images[%d].annotations[%q] is no reference of an image", i, idAnnotation))
				continue
			}
			entry.ids = append(entry.ids, full(id))
		}
		images.images = append(images.images, entry)
	}
	faults = append(faults, images.ambiguous()...)
	return images, provisioner.Join(faults)
}

// ambiguous finds references that stand for two images.
func (l lock) ambiguous() (faults []*provisioner.InputError) {
	seen := map[string]string{}
	for _, one := range l.images {
		for _, id := range one.ids {
			if other, there := seen[id]; there && other != one.image.DigestStr() {
				faults = append(faults, refuse(l.file, "%s stands for two images, %s and %s: lock it again", id, other, one.image.DigestStr()))
			}
			seen[id] = one.image.DigestStr()
		}
	}
	return faults
}

// checkDescription refuses a bundle.yml that is something else. Nothing in it is used.
func checkDescription(ctx context.Context, content fs.FS, folder string) error {
	file := path.Join(folder, "bundle.yml")
	var read struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Authors    json.RawMessage `json:"authors"`
		Websites   json.RawMessage `json:"websites"`
	}
	found, err := decodeFile(ctx, content, file, &read)
	if err == nil && found && (read.APIVersion != lockVersion || read.Kind != "Bundle") {
		return refuse(file, "is %s %s, and not %s Bundle", read.APIVersion, read.Kind, lockVersion)
	}
	return err
}

// decodeFile reads a file of one document, and knows all of its fields.
func decodeFile(ctx context.Context, content fs.FS, file string, into any) (found bool, err error) {
	data, err := fs.ReadFile(content, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the content: %w", err)
	}
	docs, faults, err := parse.File(ctx, file, data)
	switch {
	case err != nil:
		return false, err
	case len(faults) > 0:
		return false, provisioner.Join(faults)
	case len(docs) != 1:
		return false, refuse(file, "holds %d documents, and one is expected", len(docs))
	}
	if err := exactly(docs[0].Value, into); err != nil {
		return false, refuse(file, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return true, nil
}

// exactly reads a value into a type of ours. It is strict: what is mistyped would not be done.
func exactly(value, into any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(encoded, into)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
}

// full is a reference in the way in which two of them can be compared, or "".
func full(reference string) string {
	parsed, err := name.ParseReference(reference)
	if err != nil {
		return ""
	}
	return parsed.Name()
}

func checkRepository(repository string) error {
	_, err := name.NewRepository(repository)
	return err
}

// at gives the lock with the images where they are to be taken from.
func (l lock) at(options options, origins []provisioner.Origin, folder string) (lock, error) {
	switch options.Images {
	case imagesOriginal:
		return lock{file: l.file}, nil
	case imagesLocked:
		return l, nil
	}
	repository := options.Repository
	if repository == "" {
		repository = repositoryOf(origins, folder)
	}
	if repository == "" {
		return lock{}, refuse("config", "images is %s, and the content does not come from a registry, so the repository of the bundle is not known: set repository", imagesRelocated)
	}
	into, err := name.NewRepository(repository)
	if err != nil {
		return lock{}, refuse("config", "the repository %q cannot hold images: %s", repository, err)
	}
	moved := lock{file: l.file}
	for _, one := range l.images {
		moved.images = append(moved.images, locked{ids: one.ids, image: into.Digest(one.image.DigestStr())})
	}
	return moved, nil
}

// repositoryOf is that of the image from which the folder with the lock came: of several, the one that was put nearest to it.
func repositoryOf(origins []provisioner.Origin, folder string) string {
	best, depth := "", -1
	for _, origin := range origins {
		at := path.Clean(origin.Path)
		if origin.Kind != "oci" || at != "." && at != folder && !strings.HasPrefix(folder, at+"/") {
			continue
		}
		repository, _, _ := strings.Cut(origin.Ref, "@")
		if parsed, err := name.ParseReference(strings.TrimPrefix(origin.Ref, "oci://")); err == nil {
			repository = parsed.Context().Name()
		}
		if deep := len(at); at == "." && depth < 0 || at != "." && deep >= depth {
			best, depth = repository, deep
		}
	}
	return best
}
