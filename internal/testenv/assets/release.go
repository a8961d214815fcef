// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// releases is where the Kubernetes project publishes the programs of each version, with their digests.
const releases = "https://dl.k8s.io/release"

// maxSum bounds what is read of a file that holds a digest.
const maxSum = 1 << 10

// downloadReleases brings programs of the version that a build would give.
func (f *Finder) downloadReleases(ctx context.Context, dir string, wanted []string) error {
	version, err := f.Version()
	if err != nil {
		return err
	}
	for _, name := range wanted {
		f.say("downloading %s %s", name, version)
		url := fmt.Sprintf("%s/%s/bin/%s/%s/%s", f.Releases, version, runtime.GOOS, runtime.GOARCH, name)
		if err := downloadTo(ctx, url, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// downloadTo brings a program whose digest stands beside it. It appears under its name only when it is complete.
func downloadTo(ctx context.Context, url, target string) error {
	var want strings.Builder
	if err := get(ctx, url+".sha256", &want, maxSum); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(target), "download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	output := filepath.Join(temp, filepath.Base(target))
	file, err := os.OpenFile(output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = get(ctx, url, io.MultiWriter(file, sum), 1<<30)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.TrimSpace(want.String()) {
		return fmt.Errorf("sha256 is %s, not %s as %s.sha256 says", got, strings.TrimSpace(want.String()), url)
	}
	return complete(output, target)
}

// get writes at most limit bytes of what is at the URL.
func get(ctx context.Context, url string, to io.Writer, limit int64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	_, err = io.Copy(to, io.LimitReader(response.Body, limit))
	return err
}
