// SPDX-License-Identifier: Apache-2.0

// Package fetchbench compares fetching and unpacking an image with what
// go-containerregistry does for the same image from the same registry:
// mutate.Extract, its files written to disk by a plain loop. It is part of no
// program; `make bench` and this package's benchmark call it.
package fetchbench

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source/oci"
)

// Report compares the two. Durations are medians.
type Report struct {
	Image  string        `json:"image"`
	Bytes  int64         `json:"bytes"` // of the files
	Files  int           `json:"files"`
	Ours   time.Duration `json:"oursNanoseconds"`
	Theirs time.Duration `json:"theirsNanoseconds"`
	// CPU time of this process, the registry's too if it is part of it.
	OursCPU   time.Duration `json:"oursCPUNanoseconds"`
	TheirsCPU time.Duration `json:"theirsCPUNanoseconds"`
	// Ratio is our throughput to theirs; 1 or more is the aim.
	Ratio float64 `json:"ratio"`
}

// String gives one line.
func (r Report) String() string {
	rate := func(d time.Duration) float64 { return float64(r.Bytes) / (1 << 20) / d.Seconds() }
	return fmt.Sprintf("%s: %d files, %d MiB: ours %v (%.0f MiB/s, CPU %v), go-containerregistry %v (%.0f MiB/s, CPU %v), ratio %.2f",
		r.Image, r.Files, r.Bytes>>20, r.Ours.Round(time.Millisecond), rate(r.Ours), r.OursCPU.Round(time.Millisecond),
		r.Theirs.Round(time.Millisecond), rate(r.Theirs), r.TheirsCPU.Round(time.Millisecond), r.Ratio)
}

// Compare fetches ref (from a registry that speaks plain HTTP) runs times each
// way, in turn, into fresh folders below dir.
func Compare(ctx context.Context, ref, dir string, runs int) (Report, error) {
	report := Report{Image: ref}
	var ours, theirs []took
	for i := range runs {
		took, err := timed(filepath.Join(dir, fmt.Sprint("theirs", i)), func(dir string) error { return Theirs(ctx, ref, dir) })
		if err != nil {
			return report, fmt.Errorf("go-containerregistry: %w", err)
		}
		theirs = append(theirs, took)
		took, err = timed(filepath.Join(dir, fmt.Sprint("ours", i)), func(dir string) error {
			tree, err := Ours(ctx, ref, dir)
			report.Bytes, report.Files = tree.Bytes, tree.Files
			return err
		})
		if err != nil {
			return report, fmt.Errorf("rukpak: %w", err)
		}
		ours = append(ours, took)
	}
	our, their := median(ours), median(theirs)
	report.Ours, report.OursCPU, report.Theirs, report.TheirsCPU = our.wall, our.cpu, their.wall, their.cpu
	report.Ratio = report.Theirs.Seconds() / report.Ours.Seconds()
	return report, nil
}

// timed runs do in a fresh folder that is removed afterwards, and begins with
// a quiet disk.
func timed(dir string, do func(dir string) error) (t took, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return took{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	syscall.Sync()
	began, cpu := time.Now(), cpuTime()
	err = do(dir)
	return took{time.Since(began), cpuTime() - cpu}, err
}

// took is how long something took.
type took struct{ wall, cpu time.Duration }

func median(all []took) took {
	slices.SortFunc(all, func(a, b took) int { return cmp.Compare(a.wall, b.wall) })
	return all[len(all)/2]
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Ours fetches an image into a new content store.
func Ours(ctx context.Context, ref, dir string) (content.Tree, error) {
	store, err := content.OpenDisk(ctx, dir, content.Options{})
	if err != nil {
		return content.Tree{}, err
	}
	defer store.Close() //nolint:errcheck // the folder is about to go
	fetcher := oci.New(store, oci.Options{})
	src := oci.Source{Ref: ref, Insecure: true}
	pinned, err := fetcher.Resolve(ctx, src)
	if err != nil {
		return content.Tree{}, err
	}
	tree, _, err := fetcher.Fetch(ctx, src, pinned)
	return tree, err
}

// Theirs extracts an image with go-containerregistry and writes its files.
func Theirs(ctx context.Context, ref, dir string) error {
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		return err
	}
	image, err := remote.Image(parsed, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	stream := mutate.Extract(image)
	defer stream.Close() //nolint:errcheck // it was read to its end
	return untar(stream, dir)
}

func untar(r io.Reader, dir string) error {
	tr := tar.NewReader(r)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, header.Name) //nolint:gosec // the images are our own
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeSymlink:
			err = os.Symlink(header.Linkname, path)
		case tar.TypeReg:
			err = write(path, tr)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, r io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	return errors.Join(err, file.Close())
}
