// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/content"
)

// files answers with the list of all files, with one file, or with the list of
// one folder.
func (c *call) files() error {
	found, err := c.open()
	if err != nil {
		return err
	}
	defer found.close()
	name := c.path
	if name == "" {
		name = "."
	}
	if !fs.ValidPath(name) {
		return apierrors.NewBadRequest(fmt.Sprintf("%q is not the path of a file: it must be relative and clean", name))
	}
	info, err := fs.Stat(found.tree, name)
	if err != nil {
		return c.noFile(found, name, err)
	}
	only := c.r.URL.Query().Get("only")
	switch {
	case info.IsDir() && only == "file":
		return notFound("%q of Bundle %s/%s is a folder, not a file", name, found.bundle.Namespace, found.bundle.Name)
	case info.IsDir():
		return c.list(found, name)
	case only == "folder":
		return notFound("%q of Bundle %s/%s is a file, not a folder", name, found.bundle.Namespace, found.bundle.Name)
	}
	return c.file(found, name)
}

func (c *call) noFile(found *opened, name string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(name, "!") && !strings.Contains(name, "!/"):
		return notFound("Bundle %s/%s has no file %q; a path inside of an image begins with !/, as in disk.img!/etc/fstab", found.bundle.Namespace, found.bundle.Name, name)
	case err == fs.ErrNotExist: //nolint:errorlint // nothing is to be said but that
		return notFound("Bundle %s/%s has no file %q", found.bundle.Namespace, found.bundle.Name, name)
	case errors.Is(err, fs.ErrNotExist):
		return notFound("Bundle %s/%s has no file %q: %v", found.bundle.Namespace, found.bundle.Name, name, err)
	}
	return apierrors.NewBadRequest(err.Error())
}

// listing is what is asked for of a list.
type listing struct {
	root      string // of the list, "." for all
	limit     int    // 0 for none
	after     string // path behind which the page begins
	recursive bool
}

func parseListing(root string, query url.Values) (listing, error) {
	l := listing{root: root, after: query.Get("continue"), recursive: true}
	if err := known(query, "limit", "continue", "recursive", "only"); err != nil {
		return l, err
	}
	var err error
	if text := query.Get("limit"); text != "" {
		if l.limit, err = strconv.Atoi(text); err != nil || l.limit < 0 {
			return l, apierrors.NewBadRequest(fmt.Sprintf("limit=%q is not a number of files", text))
		}
	}
	if text := query.Get("recursive"); text != "" {
		if l.recursive, err = strconv.ParseBool(text); err != nil {
			return l, apierrors.NewBadRequest(fmt.Sprintf("recursive=%q is neither true nor false", text))
		}
	}
	if l.after != "" && (!fs.ValidPath(l.after) || !below(root, l.after)) {
		return l, apierrors.NewBadRequest(fmt.Sprintf("continue=%q is not what an earlier page of this list gave", l.after))
	}
	return l, nil
}

// known refuses parameters that nothing looks at, which are mistyped ones. What clients of Kubernetes add by themselves is
// let pass.
func known(query url.Values, names ...string) error {
	for name := range query {
		if !slices.Contains(names, name) && name != "timeout" && name != "pretty" {
			return apierrors.NewBadRequest(fmt.Sprintf("there is no parameter %q; there are %s", name, strings.Join(names, ", ")))
		}
	}
	return nil
}

func (c *call) list(found *opened, root string) error {
	asked, err := parseListing(root, c.r.URL.Query())
	if err != nil {
		return err
	}
	if _, err := fs.Lstat(found.tree, cmp.Or(asked.after, root)); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("continue=%q is not what an earlier page of this list gave", asked.after))
	}
	c.w.Header().Set("Content-Type", "application/json")
	if c.unchanged(fmt.Sprintf(`"%s list %s"`, found.digest, url.QueryEscape(root+"?"+c.r.URL.Query().Encode()))) {
		return nil
	}
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	out := bufio.NewWriterSize(c.w, 64<<10)
	if err := writeList(out, found, asked); err != nil {
		return err
	}
	return out.Flush()
}

// unchanged answers 304 to who has it already.
func (c *call) unchanged(tag string) bool {
	c.w.Header().Set("ETag", tag)
	for _, known := range strings.Split(c.r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimSpace(known); known == tag || known == "*" {
			c.w.Header().Del("Content-Type")
			c.w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// errEnough ends the walk at the end of a page.
var errEnough = errors.New("enough")

func writeList(out *bufio.Writer, found *opened, asked listing) error {
	head := contentv1.FileList{Content: string(found.digest)}
	_, _ = fmt.Fprintf(out, `{"kind":"FileList","apiVersion":%q,"content":%q,"items":[`, contentv1.GroupVersion, found.digest) // a failure shows in Flush
	count, last := 0, ""
	err := fs.WalkDir(found.tree, asked.root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == asked.root {
			return nil
		}
		if asked.after != "" && before(name, asked.after) {
			if entry.IsDir() && !below(name, asked.after) {
				return fs.SkipDir
			}
			return nil
		}
		if asked.limit > 0 && count == asked.limit {
			head.Continue = last
			return errEnough
		}
		count, last = count+1, name
		if err := writeFile(out, found.tree, entry, name, count > 1); err != nil {
			return err
		}
		if entry.IsDir() && !asked.recursive {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	meta, err := json.Marshal(head.ListMeta)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n],\"metadata\":%s}\n", meta)
	return err
}

func writeFile(out io.Writer, tree fs.FS, entry fs.DirEntry, name string, more bool) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	file := fileOf(name, info)
	if file.Type == contentv1.TypeLink && file.Target == "" { // one inside an image
		file.Target, _ = fs.ReadLink(tree, name) // a broken one is listed without
	}
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	separator := "\n"
	if more {
		separator = ",\n"
	}
	if _, err := io.WriteString(out, separator); err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// fileOf describes what a name of the content is, not following links.
func fileOf(name string, info fs.FileInfo) contentv1.File {
	file := contentv1.File{Path: name, Type: contentv1.TypeFile}
	entry, _ := info.Sys().(*content.Entry)
	switch {
	case info.IsDir():
		file.Type = contentv1.TypeFolder
	case info.Mode()&fs.ModeSymlink != 0:
		file.Type = contentv1.TypeLink
		if entry != nil {
			file.Target = entry.Target
		}
	default:
		file.Size, file.Mode, file.MediaType = info.Size(), "0644", mediaTypeOf(name)
		if info.Mode()&0o111 != 0 {
			file.Mode = "0755"
		}
		if entry != nil {
			file.Digest = string(entry.Sum.Digest())
		}
	}
	return file
}

// below tells whether a path is that of a folder or of something in it.
func below(dir, name string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// before tells whether a walk comes to a before it comes to b, or both are the same.
func before(a, b string) bool {
	for {
		partA, restA, moreA := strings.Cut(a, "/")
		partB, restB, moreB := strings.Cut(b, "/")
		switch {
		case partA != partB:
			return partA < partB
		case !moreA:
			return true
		case !moreB:
			return false
		}
		a, b = restA, restB
	}
}
