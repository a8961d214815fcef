// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"oras.land/oras-go/v2"
	orasfile "oras.land/oras-go/v2/content/file"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

const (
	diskMiB     = 1024
	diskFiles   = 100
	diskFile    = 4 << 10 // bytes
	diskLimit   = 0.05    // seconds
	listedFiles = 100_000
	listLimit   = 1 // second
)

// throughTheAPI asks the content API, by way of the API server as users do, for files inside a disk image and for a long list.
func throughTheAPI(ctx context.Context, b *bench) ([]Row, error) {
	s, err := b.environment(ctx)
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rukpak-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &reads{bench: b, stage: s, dir: dir}
	// The registry of the environment keeps blobs in memory, which takes ever longer for large ones.
	if r.registry, err = ociregistry.Start(ociregistry.Options{Dir: filepath.Join(dir, "registry")}); err != nil {
		return nil, err
	}
	defer r.registry.Close()
	if r.http, err = rest.HTTPClientFor(s.env.Cluster.Config()); err != nil {
		return nil, err
	}
	disk, err := r.disk(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	list, err := r.list(ctx)
	return append(disk, list...), s.explain(err)
}

type reads struct {
	*bench
	*stage
	dir      string
	registry *ociregistry.Registry
	http     *http.Client
}

// disk reads each of some small files in an ext4 image that is stored as one file.
func (r *reads) disk(ctx context.Context) ([]Row, error) {
	files, mib := filepath.Join(r.dir, "files"), r.scaled(diskMiB)
	if err := os.MkdirAll(files, 0o755); err != nil {
		return nil, err
	}
	for i := range diskFiles {
		content := make([]byte, diskFile)
		_, _ = rand.Read(content) // never fails
		if err := os.WriteFile(filepath.Join(files, fmt.Sprintf("file-%03d", i)), content, 0o644); err != nil {
			return nil, err
		}
	}
	image := filepath.Join(r.dir, "disk.img")
	r.say("   make an ext4 image of %d MiB and store it", mib)
	maker := exec.CommandContext(ctx, "mke2fs", "-q", "-t", "ext4", "-d", files, image, fmt.Sprintf("%dM", mib)) //nolint:gosec // our own arguments
	if out, err := maker.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mke2fs: %w: %s", err, out)
	}
	if err := r.publish(ctx, "disk", image); err != nil {
		return nil, err
	}
	var times []float64
	for i := range diskFiles {
		begun := time.Now()
		got, err := r.get(ctx, fmt.Sprintf("disk/files/disk.img!/file-%03d", i))
		if err != nil {
			return nil, err
		}
		times = append(times, time.Since(begun).Seconds())
		want, err := os.ReadFile(filepath.Join(files, fmt.Sprintf("file-%03d", i)))
		if err != nil || string(got) != string(want) {
			return nil, errors.Join(err, fmt.Errorf("file %d of the image comes back as other bytes", i))
		}
	}
	scene := fmt.Sprintf("one file of %d KiB in an ext4 image of %d MiB", diskFile>>10, mib)
	return []Row{
		{What: scene + ": the first", Measured: times[0], Unit: "s", Target: below(diskLimit)},
		{What: scene + fmt.Sprintf(": p99 of %d", diskFiles), Measured: percentile(times, 99), Unit: "s", Target: below(diskLimit)},
		{What: scene + ": median", Measured: median(times), Unit: "s"},
	}, nil
}

// publish pushes a file as it is and makes a Bundle of it.
func (r *reads) publish(ctx context.Context, name, path string) error {
	store, err := orasfile.New(r.dir)
	if err != nil {
		return err
	}
	layer, err := store.Add(ctx, filepath.Base(path), "application/octet-stream", path)
	if err != nil {
		return err
	}
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "application/vnd.example.disk",
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	if err == nil {
		err = store.Tag(ctx, manifest, "v1")
	}
	if err != nil {
		return err
	}
	ref := r.registry.Host() + "/bench/" + name + ":v1"
	repository, err := orasRepository(ref)
	if err != nil {
		return err
	}
	if _, err := oras.Copy(ctx, store, "v1", repository, "v1", oras.DefaultCopyOptions); err != nil {
		return err
	}
	return r.store(ctx, name, ref)
}

// store makes a Bundle and waits until its content can be read.
func (r *reads) store(ctx context.Context, name, ref string) error {
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name},
		Spec: v1alpha1.BundleSpec{
			ProvisionerClassName: className(v1alpha1.ApprovalManual),
			Sources:              []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: ref, Insecure: true}}},
		},
	}
	if err := r.client.Create(ctx, bundle); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionTrue {
			return nil
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("bundle %s is not ready: %+v", name, ready)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// list asks for all names of a tree of many files.
func (r *reads) list(ctx context.Context) ([]Row, error) {
	count := r.scaled(listedFiles)
	r.say("   store %d files", count)
	files := make([]archived, count)
	for i := range files {
		files[i] = archived{fmt.Sprintf("dir-%03d/file-%06d.txt", i%100, i), fmt.Append(nil, i%1000)}
	}
	layer, err := layerOf(files...)
	if err != nil {
		return nil, err
	}
	ref := r.registry.Host() + "/bench/list:v1"
	if err := push(ctx, ref, layer); err != nil {
		return nil, err
	}
	if err := r.store(ctx, "list", ref); err != nil {
		return nil, err
	}
	var times []float64
	for range r.rounds {
		begun := time.Now()
		text, err := r.get(ctx, "list/files")
		if err != nil {
			return nil, err
		}
		times = append(times, time.Since(begun).Seconds())
		var found struct{ Items []struct{ Type string } }
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, err
		}
		listed := 0
		for _, item := range found.Items {
			if item.Type == "File" {
				listed++
			}
		}
		if listed != count {
			return nil, fmt.Errorf("%d files are listed, want %d", listed, count)
		}
	}
	return []Row{
		{What: fmt.Sprintf("list of %d files: the first", count), Measured: times[0], Unit: "s", Target: below(listLimit)},
		{What: fmt.Sprintf("list of %d files: median of %d", count, r.rounds), Measured: median(times), Unit: "s", Target: below(listLimit)},
	}, nil
}

// get reads one path of the content API below the Bundles of the tenants.
func (r *reads) get(ctx context.Context, path string) ([]byte, error) {
	url := r.env.Cluster.Config().Host + "/apis/content.rukpak.io/v1alpha1/namespaces/" + tenants + "/bundles/" + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, answer.Status, body)
	}
	return body, err
}
