// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/bucket"
	"rukpak.io/rukpak/internal/source/helm"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv/s3server"
	"rukpak.io/rukpak/internal/testenv/webserver"
)

// opener is one without rules.
func opener(t *testing.T) *Opener {
	t.Helper()
	client := web.NewClient(web.Options{})
	return &Opener{
		Live: admin(t), OCI: oci.New(nil, oci.Options{}),
		HTTP: web.New(client), Helm: helm.New(helm.Options{Client: client}), Bucket: bucket.New(bucket.Options{}),
	}
}

// case of a source and the Secrets of its namespace.
type serverCase struct {
	spec v1alpha1.BundleSource
	want map[string]string
	err  string // of the Secret
}

func checkServers(t *testing.T, namespace string, cases map[string]serverCase) {
	t.Helper()
	all := opener(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := texts(t, all, tc.spec, Place{Namespace: namespace, Field: "spec.sources[0]"})
			if tc.err != "" {
				if _, ok := errors.AsType[*SecretError](err); !ok || !strings.HasPrefix(err.Error(), "spec.sources[0]: ") || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSourcesOfWebServersAreOpenedWithTheirSecrets(t *testing.T) {
	api, namespace := admin(t), cluster.Env(t).NewNamespace(t)
	server := webserver.New(t, webserver.Options{TLS: true, User: "ann", Password: "hunter2"})
	data := []byte("kind: A\n")
	url := server.Put("/app.yaml", data)
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	newSecret(t, api, namespace, "web", map[string][]byte{"username": []byte("ann"), "password": []byte("hunter2"), "ca.crt": server.CA()})
	newSecret(t, api, namespace, "typo", map[string][]byte{"user": []byte("ann")})
	ref := func(name string) *v1alpha1.LocalReference { return &v1alpha1.LocalReference{Name: name} }
	checkServers(t, namespace, map[string]serverCase{
		"File":    {v1alpha1.BundleSource{HTTP: &v1alpha1.HTTPSource{URL: url, SecretRef: ref("web")}}, map[string]string{"app.yaml": "kind: A\n"}, ""},
		"Pinned":  {v1alpha1.BundleSource{HTTP: &v1alpha1.HTTPSource{URL: url, SHA256: sum, FileName: "b.yaml", SecretRef: ref("web")}}, map[string]string{"b.yaml": "kind: A\n"}, ""},
		"Absent":  {v1alpha1.BundleSource{HTTP: &v1alpha1.HTTPSource{URL: url, SecretRef: ref("none")}}, nil, `Secret "none" does not exist in namespace "` + namespace + `"`},
		"Typo":    {v1alpha1.BundleSource{HTTP: &v1alpha1.HTTPSource{URL: url, SecretRef: ref("typo")}}, nil, `Secret "typo" in namespace "` + namespace + `": key "user" means nothing`},
		"NoChart": {v1alpha1.BundleSource{Helm: &v1alpha1.HelmSource{Repository: server.URL("/"), Chart: "app", SecretRef: ref("none")}}, nil, `Secret "none" does not exist`},
	})
	_, _, err := texts(t, opener(t), v1alpha1.BundleSource{HTTP: &v1alpha1.HTTPSource{URL: url}}, Place{Namespace: namespace, Field: "spec.sources[0]"})
	if source.ReasonOf(err) != source.ReasonUntrustedServer {
		t.Errorf("without the Secret: %v", err)
	}
	server.Put("/index.yaml", []byte("entries:\n  app:\n  - version: 1.0.0\n    urls: [app-1.0.0.tgz]\n"))
	_, _, err = texts(t, opener(t), v1alpha1.BundleSource{Helm: &v1alpha1.HelmSource{Repository: server.URL("/"), Chart: "app", SecretRef: ref("web")}}, Place{Namespace: namespace, Field: "spec.sources[0]"})
	if source.ReasonOf(err) != source.ReasonNotFound || !strings.Contains(err.Error(), "/app-1.0.0.tgz") {
		t.Errorf("the index is not read with the Secret: %v", err)
	}
}

func TestSourcesOfBucketsAreOpenedWithTheirSecrets(t *testing.T) {
	api, namespace := admin(t), cluster.Env(t).NewNamespace(t)
	server := s3server.New(t, s3server.Options{TLS: true})
	things := server.Bucket(t, "things", true)
	first := things.Put(t, "app/a.yaml", []byte("1"))
	things.Put(t, "app/a.yaml", []byte("2"))
	newSecret(t, api, namespace, "s3", map[string][]byte{"accessKey": []byte(server.User()), "secretKey": []byte(server.Password()), "ca.crt": server.CA()})
	newSecret(t, api, namespace, "half", map[string][]byte{"accessKey": []byte(server.User())})
	spec := func(secret string, edit func(*v1alpha1.BucketSource)) v1alpha1.BundleSource {
		from := &v1alpha1.BucketSource{Endpoint: server.Endpoint() + "/", Bucket: "things", Region: s3server.Region, SecretRef: &v1alpha1.LocalReference{Name: secret}}
		edit(from)
		return v1alpha1.BundleSource{Bucket: from}
	}
	checkServers(t, namespace, map[string]serverCase{
		"Bucket":  {spec("s3", func(*v1alpha1.BucketSource) {}), map[string]string{"app/a.yaml": "2"}, ""},
		"Folder":  {spec("s3", func(b *v1alpha1.BucketSource) { b.Prefix = "app" }), map[string]string{"a.yaml": "2"}, ""},
		"Version": {spec("s3", func(b *v1alpha1.BucketSource) { b.Object, b.VersionID = "app/a.yaml", first }), map[string]string{"a.yaml": "1"}, ""},
		"Absent":  {spec("none", func(*v1alpha1.BucketSource) {}), nil, `Secret "none" does not exist`},
		"Half":    {spec("half", func(*v1alpha1.BucketSource) {}), nil, "accessKey and secretKey belong together"},
	})
}
