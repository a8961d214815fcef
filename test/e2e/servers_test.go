// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv/s3server"
	"rukpak.io/rukpak/internal/testenv/webserver"
)

func (a *tenant) secret(name string, data map[string]string) *v1alpha1.LocalReference {
	a.t.Helper()
	a.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}, StringData: data})
	return &v1alpha1.LocalReference{Name: name}
}

func TestContentOfAWebServerAndABucketIsFollowed(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	web := webserver.New(t, webserver.Options{TLS: true, User: "ann", Password: "hunter2"})
	s3 := s3server.New(t, s3server.Options{TLS: true})
	bucket := s3.Bucket(t, "things", false)
	url := web.Put("/web.yaml", []byte(configMap("web", "1")))
	bucket.Put(t, "app/bucket.yaml", []byte(configMap("bucket", "1")))
	sources := []v1alpha1.BundleSource{
		{HTTP: &v1alpha1.HTTPSource{URL: url, SecretRef: a.secret("web", map[string]string{"username": "ann", "password": "hunter2", "ca.crt": string(web.CA())})}},
		{Bucket: &v1alpha1.BucketSource{Endpoint: s3.Endpoint(), Bucket: "things", Prefix: "app", Region: s3server.Region,
			SecretRef: a.secret("s3", map[string]string{"accessKey": s3.User(), "secretKey": s3.Password(), "ca.crt": string(s3.CA())})}},
	}
	a.instance("app", "", func(i *v1alpha1.BundleInstance) {
		i.Spec.Bundle.Sources = sources
		i.Spec.Track = &v1alpha1.Track{Interval: metav1.Duration{Duration: 10 * time.Second}}
	})
	a.ready("app")
	a.value("web", "1")
	a.value("bucket", "1")

	web.Put("/web.yaml", []byte(configMap("web", "2")))
	a.value("web", "2")
	bucket.Put(t, "app/bucket.yaml", []byte(configMap("bucket", "2")))
	a.value("bucket", "2")
	conditional := false
	for _, r := range web.Requests() {
		conditional = conditional || r.Header.Get("If-None-Match") != ""
	}
	if !conditional {
		t.Error("looking again at what did not change was never conditional")
	}
}

func TestAChartOfARepositoryIsPinnedWithItsVersion(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	web := webserver.New(t, webserver.Options{})
	web.Put("/index.yaml", []byte("entries:\n  app:\n  - version: 1.2.3\n    urls: [app.tgz]\n"))
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "chart"},
		Spec: v1alpha1.BundleSpec{ProvisionerClassName: a.class, Sources: []v1alpha1.BundleSource{
			{Helm: &v1alpha1.HelmSource{Repository: web.URL("/"), Chart: "app", Version: "^1", Insecure: true}},
		}},
	}
	a.create(bundle)
	ready := func(status metav1.ConditionStatus, message string) {
		t.Helper()
		var last *metav1.Condition
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			if err := a.client.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
				return false, err
			}
			last = meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionReady)
			return last != nil && last.Status == status && strings.Contains(last.Message, message), nil
		})
		if err != nil {
			t.Fatalf("Ready is %+v, want %s with %q", last, status, message)
		}
	}
	ready(metav1.ConditionFalse, "/app.tgz: ")
	web.Put("/app.tgz", chartOf(t, "app", "1.2.3"))
	ready(metav1.ConditionTrue, "files")
	resolved := bundle.Status.Sources[0]
	if resolved.Version != "1.2.3" || resolved.Ref != web.URL("/app.tgz@")+string(resolved.Digest) || bundle.Status.Content.Files != 2 {
		t.Errorf("resolved to %+v, content %+v", resolved, bundle.Status.Content)
	}
}
