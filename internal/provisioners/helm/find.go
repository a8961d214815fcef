// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	chartFile     = "Chart.yaml"
	archiveEnding = ".tgz"
	// maxSearched entries are looked at for a chart that no parameter names.
	maxSearched = 100_000
)

// find says where the chart is: its folder, or its archive.
func find(ctx context.Context, content fs.FS, named string) (string, error) {
	if named != "" {
		return named, checkNamed(content, named)
	}
	switch _, err := fs.Stat(content, chartFile); {
	case err == nil:
		return ".", nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read the content: %w", err)
	}
	folders, archives, err := search(ctx, content)
	switch {
	case err != nil:
		return "", err
	case len(folders) == 1:
		return folders[0], nil
	case len(folders) > 1:
		return "", refuse("", "there are several charts (%s): name one by the parameter chart of the class", some(folders))
	case len(archives) == 1:
		return archives[0], nil
	case len(archives) > 1:
		return "", refuse("", "there are several archives of charts (%s): name one by the parameter chart of the class", some(archives))
	}
	return "", refuse("", "there is no Chart.yaml: choose a class whose provisioner renders what the content is")
}

func checkNamed(content fs.FS, named string) error {
	info, err := fs.Stat(content, named)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("parameters", "chart: there is no %q in the content", named)
	case err != nil:
		return fmt.Errorf("read the content: %w", err)
	case !info.IsDir():
		return nil
	}
	_, err = fs.Stat(content, path.Join(named, chartFile))
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("parameters", "chart: there is no Chart.yaml in the folder %q", named)
	}
	if err != nil {
		return fmt.Errorf("read the content: %w", err)
	}
	return nil
}

// search lists the folders of charts that are in no other chart, and the archives that are in none.
func search(ctx context.Context, content fs.FS) (folders, archives []string, err error) {
	seen := 0
	err = fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return fmt.Errorf("list the content: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case seen > maxSearched:
			return refuse("", "there are more than %d files and no chart among the first: name its folder by the parameter chart of the class", maxSearched)
		case entry.IsDir() && name != ".":
			if _, err := fs.Stat(content, path.Join(name, chartFile)); err == nil {
				folders = append(folders, name)
				return fs.SkipDir
			}
		case !entry.IsDir() && strings.HasSuffix(name, archiveEnding):
			archives = append(archives, name)
		}
		return nil
	})
	return folders, archives, err
}

// some names the first of many.
func some(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
