// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestSourcesOfServersAreNamedWithoutWhatMayBeSecret(t *testing.T) {
	for want, source := range map[string]v1alpha1.BundleSource{
		"https://example.com/a.tgz":                        {HTTP: &v1alpha1.HTTPSource{URL: "https://example.com/a.tgz?signature=hunter2"}},
		"https://example.com/a.tgz, folder b/c":            {HTTP: &v1alpha1.HTTPSource{URL: "https://example.com/a.tgz", SubPath: "b/c"}},
		"app ^1 of https://example.com/charts":             {Helm: &v1alpha1.HelmSource{Repository: "https://example.com/charts", Chart: "app", Version: "^1"}},
		"app of oci://example.com/charts":                  {Helm: &v1alpha1.HelmSource{Repository: "oci://example.com/charts", Chart: "app"}},
		"https://s3.example.com/things/folder":             {Bucket: &v1alpha1.BucketSource{Endpoint: "https://s3.example.com/", Bucket: "things", Prefix: "folder"}},
		"https://s3.example.com/things/a.tgz, version v1":  {Bucket: &v1alpha1.BucketSource{Endpoint: "https://s3.example.com", Bucket: "things", Object: "a.tgz", VersionID: "v1"}},
		"https://s3.example.com/things":                    {Bucket: &v1alpha1.BucketSource{Endpoint: "https://s3.example.com", Bucket: "things"}},
		"app:1, its application/spdx+json":                 {OCI: &v1alpha1.OCISource{Ref: "app:1", Referrer: &v1alpha1.OCIReferrer{ArtifactType: "application/spdx+json"}}},
		"registry.example.com/app >=1.2.0 <2 (plain HTTP)": {OCI: &v1alpha1.OCISource{Ref: "registry.example.com/app", Semver: ">=1.2.0 <2", Insecure: true}},
		"registry.example.com/app:v1":                      {OCI: &v1alpha1.OCISource{Ref: "registry.example.com/app:v1"}},
	} {
		if got := sourceText(source); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
