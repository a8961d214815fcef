// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/git"
	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

func admin(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	made, err := cluster.Env(t).NewClient(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newSecret(t *testing.T, api client.Client, namespace, name string, data map[string][]byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	if err := api.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// texts opens, resolves and fetches a source, and gives its files.
func texts(t *testing.T, opener *Opener, spec v1alpha1.BundleSource, at Place) (map[string]string, source.Pinned, error) {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	opened, _, err := opener.Open(t.Context(), spec, at)
	if err != nil {
		return nil, source.Pinned{}, err
	}
	to := source.Destination{Session: session, Budget: unpack.NewBudget(unpack.Limits{})}
	pinned, err := opened.Resolve(t.Context(), to)
	if err != nil {
		return nil, pinned, err
	}
	layers, _, err := opened.Fetch(t.Context(), pinned, to)
	if err != nil {
		return nil, pinned, err
	}
	tree, err := session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err = fs.WalkDir(view, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(view, path)
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, pinned, nil
}

func TestGitSourcesUseTheSecretOfTheNamespace(t *testing.T) {
	api := admin(t)
	namespace := cluster.Env(t).NewNamespace(t)
	at := Place{Namespace: namespace, Bundle: "app", Field: "spec.sources[0]"}
	opener := &Opener{Live: api, Git: git.New(git.Options{})}
	server := gitserver.New(t, gitserver.Options{TLS: true, User: "robot", Password: "right-password"})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	commit := repo.Commit(t, "main", map[string]string{"deploy/a.yaml": "a", "other": "x"})
	repo.Git(t, "tag", "v1.2.3", "main")
	from := func(secret string) v1alpha1.BundleSource {
		made := v1alpha1.BundleSource{Git: &v1alpha1.GitSource{URL: server.URL("app.git"), Semver: "1.x", SubPath: "deploy"}}
		if secret != "" {
			made.Git.SecretRef = &v1alpha1.LocalReference{Name: secret}
		}
		return made
	}
	newSecret(t, api, namespace, "good", map[string][]byte{"username": []byte("robot"), "password": []byte("right-password\n"), "ca.crt": server.CA()})
	newSecret(t, api, namespace, "wrong", map[string][]byte{"username": []byte("robot"), "password": []byte("wrong-password"), "ca.crt": server.CA()})
	newSecret(t, api, namespace, "typo", map[string][]byte{"user": []byte("robot")})

	found, pinned, err := texts(t, opener, from("good"), at)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found["a.yaml"] != "a" {
		t.Errorf("files: %v", found)
	}
	if pinned.Version != "v1.2.3" || pinned.Digest.String() != "sha1:"+commit {
		t.Errorf("pinned as %+v", pinned)
	}
	for secret, want := range map[string]string{
		"wrong":  "do not open this repository",
		"absent": `spec.sources[0]: Secret "absent" does not exist in namespace "` + namespace + `"`,
		"typo":   `Secret "typo" in namespace "` + namespace + `": key "user" means nothing`,
		"":       "certificate",
	} {
		_, _, err := texts(t, opener, from(secret), at)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-password") {
			t.Errorf("%s: %v, want %q", secret, err, want)
		}
		wantReason := map[string]string{"wrong": source.ReasonAuthenticationFailed, "": source.ReasonUntrustedServer}[secret]
		if reason, retry := Classify(err); wantReason != "" && reason != wantReason || wantReason == "" && reason != v1alpha1.ReasonInvalidSecret || !retry {
			t.Errorf("%s: reason %s, tried again: %t", secret, reason, retry)
		}
	}
}

func TestGitSourcesUseSSHKeysOfASecret(t *testing.T) {
	api := admin(t)
	namespace := cluster.Env(t).NewNamespace(t)
	server := gitserver.NewSSH(t, gitserver.SSHOptions{})
	repo := gitserver.NewRepository(t, t.TempDir(), "app.git")
	repo.Commit(t, "main", map[string]string{"a": "x", "pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"})
	newSecret(t, api, namespace, "ssh", map[string][]byte{"identity": server.Locked(t, "open sesame"), "password": []byte("open sesame"), "known_hosts": server.KnownHosts})
	opener := &Opener{Live: api, Git: git.New(git.Options{})}
	spec := v1alpha1.BundleSource{Git: &v1alpha1.GitSource{URL: server.URL(repo), Branch: "main", SecretRef: &v1alpha1.LocalReference{Name: "ssh"}}}
	at := Place{Namespace: namespace, Bundle: "app", Field: "spec.sources[0]"}
	if _, _, err := texts(t, opener, spec, at); source.ReasonOf(err) != source.ReasonUnsupportedContent {
		t.Errorf("got %v", err)
	}
	spec.Git.LFSPointers = v1alpha1.LFSPointersKeep
	found, _, err := texts(t, opener, spec, at)
	if err != nil || len(found) != 2 || found["a"] != "x" {
		t.Errorf("files: %v, %v", found, err)
	}
}

func TestSchemaOfGitSources(t *testing.T) {
	api := admin(t)
	namespace := cluster.Env(t).NewNamespace(t)
	const url = "https://example.com/team/app.git"
	for name, tc := range map[string]struct {
		source v1alpha1.GitSource
		want   string // of the error
	}{
		"TheLeast":       {v1alpha1.GitSource{URL: url}, ""},
		"SSH":            {v1alpha1.GitSource{URL: "ssh://git@example.com:2222/~user/app", Branch: "release/1.x"}, ""},
		"IPv6":           {v1alpha1.GitSource{URL: "https://[2001:db8::1]:8443/app", Commit: strings.Repeat("a", 40)}, ""},
		"Insecure":       {v1alpha1.GitSource{URL: "http://example.com/app", Insecure: true, Semver: ">=1.0.0-0 <2 || 3.x"}, ""},
		"Everything":     {v1alpha1.GitSource{URL: url, Tag: "v1.0.0", SubPath: "a b/ü", Submodules: true, LFSPointers: v1alpha1.LFSPointersKeep, SecretRef: &v1alpha1.LocalReference{Name: "s"}}, ""},
		"NoURL":          {v1alpha1.GitSource{}, "url"},
		"PlainHTTP":      {v1alpha1.GitSource{URL: "http://example.com/app"}, "or http:// with insecure"},
		"Password":       {v1alpha1.GitSource{URL: "https://user:hunter22@example.com/app"}, "without password"},
		"UserOfHTTPS":    {v1alpha1.GitSource{URL: "https://hunter22@example.com/app"}, "without password"},
		"PasswordOfSSH":  {v1alpha1.GitSource{URL: "ssh://git:hunter22@example.com/app"}, "without password"},
		"Query":          {v1alpha1.GitSource{URL: url + "?token=hunter22"}, "without password, query"},
		"SCP":            {v1alpha1.GitSource{URL: "git@example.com:team/app.git"}, "is written ssh://"},
		"File":           {v1alpha1.GitSource{URL: "file:///srv/app.git"}, "url must be https://"},
		"NoPath":         {v1alpha1.GitSource{URL: "https://example.com"}, "url must be https://"},
		"TwoChoices":     {v1alpha1.GitSource{URL: url, Branch: "a", Tag: "b"}, "at most one of branch"},
		"Prefix":         {v1alpha1.GitSource{URL: url, Semver: "*", TagPrefix: "charts/app-"}, ""},
		"PrefixAlone":    {v1alpha1.GitSource{URL: url, Tag: "v1", TagPrefix: "charts/"}, "tagPrefix needs semver"},
		"BadBranch":      {v1alpha1.GitSource{URL: url, Branch: "-upload-pack=x"}, "branch"},
		"TagWithALine":   {v1alpha1.GitSource{URL: url, Tag: "a\nb"}, "tag"},
		"ShortCommit":    {v1alpha1.GitSource{URL: url, Commit: "abcdef0"}, "commit"},
		"AbsoluteFolder": {v1alpha1.GitSource{URL: url, SubPath: "/etc"}, "subPath"},
		"LFS":            {v1alpha1.GitSource{URL: url, LFSPointers: "Fetch"}, "lfsPointers"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "b-"}}
			bundle.Spec.Sources = []v1alpha1.BundleSource{{Git: &tc.source}}
			err := api.Create(t.Context(), bundle, client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}
