// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/s3server"
)

// secret writes files as a mounted Secret has them.
func secret(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFlagsOfASharedStoreThatCannotBeUsed(t *testing.T) {
	keys := secret(t, map[string]string{"accessKey": "a", "secretKey": "hunter2"})
	for _, tc := range []struct{ flag, credentials, says string }{
		{"bucket", "", `its scheme is ""; it must be s3://`},
		{"https://example.com", "", `its scheme is "https"`},
		{"s3://%zz", "", "it is no URL"},
		{"s3://?endpoint=https://minio", keys, "it names no bucket"},
		{"s3://bucket/prefix", keys, "it needs the parameter endpoint"},
		{"s3://bucket?endpoint=minio:9000", keys, "its endpoint must be the URL of a service"},
		{"s3://bucket?endpoint=https://minio/path", keys, "without a path"},
		{"s3://bucket?endpoint=ftp://minio", keys, `its endpoint has the scheme "ftp"`},
		{"s3://bucket?endpoint=https://minio&regoin=x", keys, `it has the parameter "regoin"; there are: endpoint, region`},
		{"s3://bucket?region=a&region=b", keys, `its parameter "region" must have one value`},
		{"s3://user:hunter2@bucket?region=a", keys, "credentials do not belong into it"},
		{"s3://bucket?region=a#x", keys, "it has a fragment"},
		{"s3://bucket?region=a", "/nowhere", "/nowhere: the folder cannot be read; is the Secret mounted there?"},
		{"s3://bucket?region=a", secret(t, nil), "it has no accessKey and secretKey"},
		{"s3://bucket?region=a", secret(t, map[string]string{"accessKey": "a"}), "it needs both accessKey and secretKey"},
		{"s3://bucket?region=a", secret(t, map[string]string{"accessKey": "a", "secretKey": "hunter2", "ca.crt": "x"}), "the CA holds no certificate in PEM"},
		{"s3://bucket?region=a", secret(t, map[string]string{"accessKey": "a", "secretKey": "hunter2", "tls.crt": "x"}), "it needs both tls.crt and tls.key"},
		{"oci://host", "", "it must name a host and a repository"},
		{"oci://host/repository", "", `its host "host" has neither a dot nor a port`},
		{"oci:///repository", "", "it must name a host and a repository"},
		{"oci://host.example/UPPER", "", "it is no repository"},
		{"oci://host.example/repository:tag", "", "it is no repository"},
		{"oci://host.example/repository?insecure=yes", "", `its parameter insecure is "yes"`},
		{"oci://host.example/repository", secret(t, map[string]string{".dockerconfigjson": "{"}), ".dockerconfigjson"},
		{"oci://host.example/repository", secret(t, map[string]string{".dockerconfigjson": `{"auths":{"other":{"username":"u","password":"hunter2"}}}`}), "has no credentials for host.example"},
		{"oci://host.example/repository", secret(t, map[string]string{"username": "u"}), "it needs both username and password"},
		{"file://relative/x", "", "it must name a folder by its whole path"},
		{"file:///", "", "it must name a folder by its whole path"},
		{"file:///mnt?x=y", "", "a folder has no parameters"},
		{"file:///mnt", keys, "a folder needs no --shared-store-credentials"},
	} {
		_, err := placeOf(tc.flag, tc.credentials)
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v; want %q", tc.flag, err, tc.says)
		}
	}
	_, err := sharedStore(t.Context(), nil, nil, Options{SharedStore: "s3://user:hunter2@bucket"})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "--shared-store ") {
		t.Errorf("got %v", err)
	}
	_, err = sharedStore(t.Context(), nil, nil, Options{SharedStoreCredentials: keys})
	if err == nil || !strings.Contains(err.Error(), "--shared-store-credentials: there is no --shared-store") {
		t.Errorf("credentials alone: %v", err)
	}
	if got, err := sharedStore(t.Context(), nil, nil, Options{}); got != nil || err != nil {
		t.Errorf("without flags: %v, %v", got, err)
	}
}

func roundTrip(ctx context.Context, t *testing.T, place objects.Backend) error {
	t.Helper()
	if err := place.Put(ctx, "packs/a", objects.Bytes([]byte("x"))); err != nil {
		return err
	}
	body, err := place.Get(ctx, "packs/a")
	if err != nil {
		return err
	}
	return body.Close()
}

func TestFlagsOfABucket(t *testing.T) {
	server := s3server.New(t, s3server.Options{TLS: true})
	server.Bucket(t, "rukpak", false)
	flag := "s3://rukpak/content?endpoint=" + server.Endpoint() + "&region=" + s3server.Region
	dir := secret(t, map[string]string{"accessKey": server.User(), "secretKey": server.Password(), "ca.crt": string(server.CA())})
	place, err := placeOf(flag, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); err != nil || place.String() != "s3://rukpak/content" {
		t.Errorf("%s: %v", place, err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", server.User())
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.Password())
	plain := s3server.New(t, s3server.Options{User: server.User(), Password: server.Password()})
	plain.Bucket(t, "rukpak", false)
	place, err = placeOf("s3://rukpak?endpoint="+plain.Endpoint()+"&region="+s3server.Region, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); err != nil {
		t.Errorf("keys of the environment: %v", err)
	}
	place, err = placeOf(flag, secret(t, map[string]string{"accessKey": server.User(), "secretKey": server.Password()}))
	if err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); !objects.Is(err, objects.Unavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that is not trusted: %v", err)
	}
	place, err = placeOf("s3://rukpak?region=eu-west-1", dir)
	if err != nil || place == nil {
		t.Errorf("a region of AWS: %v", err)
	}
}

func TestFlagsOfARepository(t *testing.T) {
	server := ociregistry.New(t, ociregistry.Options{TLS: true, User: "manager", Password: "hunter2", Clients: true})
	pair := server.Client()
	files := map[string]string{"ca.crt": string(server.CA()), "tls.crt": string(pair.Certificate), "tls.key": string(pair.Key)}
	flag := "oci://" + server.Host() + "/rukpak/content"
	for name, login := range map[string]map[string]string{
		"user":   {"username": "manager", "password": "hunter2"},
		"docker": {".dockerconfigjson": `{"auths":{"` + server.Host() + `":{"username":"manager","password":"hunter2"}}}`},
	} {
		for file, text := range files {
			login[file] = text
		}
		place, err := placeOf(flag, secret(t, login))
		if err != nil {
			t.Fatal(err)
		}
		if err := roundTrip(t.Context(), t, place); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := secret(t, map[string]string{"username": "manager", "password": "old", "ca.crt": files["ca.crt"], "tls.crt": files["tls.crt"], "tls.key": files["tls.key"]})
	place, err := placeOf(flag, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); !objects.Is(err, objects.Refused) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a wrong password: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); err != nil {
		t.Errorf("the Secret was changed while the manager runs: %v", err)
	}
	plain := ociregistry.New(t, ociregistry.Options{})
	if place, err = placeOf("oci://"+plain.Host()+"/rukpak/content?insecure=true", ""); err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); err != nil {
		t.Errorf("plain HTTP: %v", err)
	}
	if place, err = placeOf("oci://"+plain.Host()+"/rukpak/content", ""); err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(t.Context(), t, place); err == nil {
		t.Error("plain HTTP is spoken unasked")
	}
}
