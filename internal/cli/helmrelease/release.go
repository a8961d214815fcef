// SPDX-License-Identifier: Apache-2.0

// Package helmrelease reads what Helm keeps of a release in a cluster, writes its chart to files again, and removes it.
//
// It stands beside RukPak's flow: what it reads is brought to the content store as any folder is.
package helmrelease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"
)

// ErrNotFound is of a release that is not there.
var ErrNotFound = errors.New("there is no such release in Secrets of this namespace")

// Read gives the version of a release that is deployed. An operation of Helm that is under way is an error.
func Read(secrets typedv1.SecretInterface, name string) (*release.Release, error) {
	found, err := driver.NewSecrets(secrets).Query(map[string]string{"owner": "helm", "name": name})
	if errors.Is(err, driver.ErrReleaseNotFound) || err == nil && len(found) == 0 {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	versions := make([]any, 0, len(found))
	for _, one := range found {
		versions = append(versions, one)
	}
	return deployedOf(versions)
}

// deployedOf gives the newest version that is deployed.
func deployedOf(versions []any) (*release.Release, error) {
	var deployed *release.Release
	for _, one := range versions {
		version, ok := one.(*release.Release)
		switch {
		case !ok || version.Info == nil || version.Chart == nil || version.Chart.Metadata == nil:
			return nil, errors.New("a version of the release is of no kind that is known here")
		case version.Info.Status.IsPending() || version.Info.Status == releasecommon.StatusUninstalling:
			return nil, fmt.Errorf("version %d of the release is %s: let Helm finish, or roll back with it, first", version.Version, version.Info.Status)
		case version.Info.Status == releasecommon.StatusDeployed && (deployed == nil || deployed.Version < version.Version):
			deployed = version
		}
	}
	if deployed == nil {
		return nil, errors.New("no version of the release is deployed")
	}
	return deployed, nil
}

// Hooks lists the hooks that run when a chart is installed, which they would again.
func Hooks(of *release.Release) []string {
	var names []string
	for _, hook := range of.Hooks {
		for _, event := range hook.Events {
			if event == release.HookPreInstall || event == release.HookPostInstall {
				names = append(names, hook.Kind+" "+hook.Name)
				break
			}
		}
	}
	return names
}

// Incomplete says what a release does not keep of its chart, "" if it keeps all.
func Incomplete(of *release.Release) string {
	if len(of.Chart.Metadata.Dependencies) > 0 {
		return "the chart has dependencies, which Helm does not keep with a release"
	}
	return ""
}

// WriteChart writes the chart of a release into a folder.
func WriteChart(of *release.Release, dir string) error {
	if err := chartutil.SaveChartfile(filepath.Join(dir, chartutil.ChartfileName), of.Chart.Metadata); err != nil {
		return err
	}
	values, err := yaml.Marshal(of.Chart.Values)
	if err != nil {
		return err
	}
	files := []*common.File{{Name: chartutil.ValuesfileName, Data: values}}
	if len(of.Chart.Schema) > 0 {
		files = append(files, &common.File{Name: chartutil.SchemafileName, Data: of.Chart.Schema})
	}
	root, err := os.OpenRoot(dir) // names are those of whoever wrote the release
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it is only a folder
	for _, file := range append(append(files, of.Chart.Templates...), of.Chart.Files...) {
		name := filepath.FromSlash(file.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		if err := root.WriteFile(name, file.Data, 0o644); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

// Remove deletes what Helm keeps of all versions of a release, and gives their number.
func Remove(ctx context.Context, secrets typedv1.SecretInterface, name string) (int, error) {
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	if err != nil {
		return 0, err
	}
	removed := 0
	for i := range list.Items {
		one := &list.Items[i]
		if one.Type != "helm.sh/release.v1" || !strings.HasPrefix(one.Name, "sh.helm.release.v1."+name+".v") {
			continue
		}
		uid := one.UID
		if err := secrets.Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
