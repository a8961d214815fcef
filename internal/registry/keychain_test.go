// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secretOf makes a pull secret whose users are named by the test: pairs of key and user.
func secretOf(pairs ...string) corev1.Secret {
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		auth := base64.StdEncoding.EncodeToString([]byte(pairs[i+1] + ":secret"))
		lines = append(lines, fmt.Sprintf("%q: {\"auth\": %q}", pairs[i], auth))
	}
	return rawSecret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths": {`+strings.Join(lines, ", ")+`}}`)
}

func rawSecret(kind corev1.SecretType, key, data string) corev1.Secret {
	return corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"},
		Type:       kind,
		Data:       map[string][]byte{key: []byte(data)},
	}
}

func users(t *testing.T, k Keychain, repository string) []string {
	t.Helper()
	repo, err := name.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, candidate := range k.Candidates(repo) {
		config, err := candidate.Authorization()
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, config.Username)
	}
	return found
}

func TestCandidates(t *testing.T) {
	for name, tc := range map[string]struct {
		secrets    []corev1.Secret
		repository string
		want       []string
	}{
		"None":               {nil, "example.com/a", []string{}},
		"Host":               {[]corev1.Secret{secretOf("example.com", "u", "other.com", "o")}, "example.com/a/b", []string{"u"}},
		"Scheme":             {[]corev1.Secret{secretOf("https://example.com", "u")}, "example.com/a", []string{"u"}},
		"OldSuffix":          {[]corev1.Secret{secretOf("https://example.com/v2/", "u")}, "example.com/a", []string{"u"}},
		"UpperCase":          {[]corev1.Secret{secretOf("Example.COM", "u")}, "example.com/a", []string{"u"}},
		"DockerHub":          {[]corev1.Secret{secretOf("https://index.docker.io/v1/", "u")}, "nginx", []string{"u"}},
		"DockerIO":           {[]corev1.Secret{secretOf("docker.io", "u")}, "docker.io/library/nginx", []string{"u"}},
		"DockerIOPath":       {[]corev1.Secret{secretOf("docker.io/acme", "u", "docker.io/other", "o")}, "acme/app", []string{"u"}},
		"Registry1":          {[]corev1.Secret{secretOf("registry-1.docker.io", "u")}, "acme/app", []string{"u"}},
		"Port":               {[]corev1.Secret{secretOf("example.com:5000", "u", "example.com", "o")}, "example.com:5000/a", []string{"u"}},
		"PortIsNotAnyPort":   {[]corev1.Secret{secretOf("example.com", "u")}, "example.com:5000/a", []string{}},
		"Port443":            {[]corev1.Secret{secretOf("example.com:443", "u")}, "example.com/a", []string{"u"}},
		"IPv6":               {[]corev1.Secret{secretOf("[::1]:5000", "u")}, "[::1]:5000/a", []string{"u"}},
		"LongerPathFirst":    {[]corev1.Secret{secretOf("example.com", "host", "example.com/team/app", "app", "example.com/team", "team")}, "example.com/team/app", []string{"app", "team", "host"}},
		"PathIsWholeParts":   {[]corev1.Secret{secretOf("example.com/team", "u")}, "example.com/team-b/app", []string{}},
		"Wildcard":           {[]corev1.Secret{secretOf("*.example.com", "u")}, "eu.example.com/a", []string{"u"}},
		"WildcardIsOnePart":  {[]corev1.Secret{secretOf("*.example.com", "u")}, "a.b.example.com/a", []string{}},
		"WildcardNotTheHost": {[]corev1.Secret{secretOf("*.example.com", "u")}, "example.com/a", []string{}},
		"WildcardInside":     {[]corev1.Secret{secretOf("eu-*.example.com", "u")}, "eu-west.example.com/a", []string{"u"}},
		"ExactBeforeWild":    {[]corev1.Secret{secretOf("*.example.com", "wild"), secretOf("eu.example.com", "exact")}, "eu.example.com/a", []string{"exact", "wild"}},
		"SecretsInOrder":     {[]corev1.Secret{secretOf("example.com", "first"), secretOf("example.com", "second")}, "example.com/a", []string{"first", "second"}},
		"SameOnlyOnce":       {[]corev1.Secret{secretOf("example.com", "u"), secretOf("example.com", "u")}, "example.com/a", []string{"u"}},
		"SuffixIsNotHost":    {[]corev1.Secret{secretOf("ample.com", "u")}, "example.com/a", []string{}},
		"BrokenPattern":      {[]corev1.Secret{secretOf("[.com", "u", "", "v")}, "example.com/a", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := FromSecrets(tc.secrets)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, users(t, k, tc.repository)); diff != "" {
				t.Errorf("users (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormsOfCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		secret corev1.Secret
		want   authn.AuthConfig
	}{
		"Auth":        {secretOf("example.com", "u"), authn.AuthConfig{Username: "u", Password: "secret"}},
		"UserAndPass": {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"example.com":{"username":"u","password":"p:q"}}}`), authn.AuthConfig{Username: "u", Password: "p:q"}},
		"Token":       {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"example.com":{"identitytoken":"t"}},"credsStore":"x"}`), authn.AuthConfig{IdentityToken: "t"}},
		"Old":         {rawSecret(corev1.SecretTypeDockercfg, ".dockercfg", `{"example.com":{"username":"u","password":"p","email":"e"}}`), authn.AuthConfig{Username: "u", Password: "p"}},
		"UnpaddedAuth": {rawSecret(corev1.SecretTypeDockercfg, ".dockercfg", `{"example.com":{"auth":"dTpwcA"}}`),
			authn.AuthConfig{Username: "u", Password: "pp"}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := FromSecrets([]corev1.Secret{tc.secret})
			if err != nil {
				t.Fatal(err)
			}
			found, err := k.Resolve(name2repo(t, "example.com/a"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := found.Authorization()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}
	none, err := Keychain{}.Resolve(name2repo(t, "example.com/a"))
	if err != nil || none != authn.Anonymous {
		t.Errorf("without secrets: %v, %v", none, err)
	}
}

func name2repo(t *testing.T, s string) name.Repository {
	t.Helper()
	repo, err := name.NewRepository(s)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func TestBadSecretsAreNamedAndNotShown(t *testing.T) {
	const private = "hunter2"
	for name, tc := range map[string]struct {
		secret corev1.Secret
		want   string
	}{
		"Type":     {rawSecret(corev1.SecretTypeOpaque, ".dockerconfigjson", private), `pull secret ns/pull: its type is "Opaque"`},
		"Missing":  {rawSecret(corev1.SecretTypeDockerConfigJson, "other", private), `pull secret ns/pull: key ".dockerconfigjson": it is missing`},
		"Syntax":   {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths": hunter2}`), `key ".dockerconfigjson": it is not valid JSON at byte 11`},
		"Cut":      {rawSecret(corev1.SecretTypeDockercfg, ".dockercfg", `{"example.com":{"password":"hunter2`), `key ".dockercfg": it is not valid JSON`},
		"JSONType": {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"example.com":"hunter2"}}`), "another type than a Docker configuration"},
		"Base64":   {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"example.com":{"auth":"hunter2!"}}}`), `"auth" is not base64`},
		"NoColon":  {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"example.com":{"auth":"aHVudGVyMg=="}}}`), `"username:password"`},
		"Empty":    {rawSecret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", ``), "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := FromSecrets([]corev1.Secret{tc.secret, secretOf("example.com", "good")})
			if _, ok := errors.AsType[*SecretError](err); !ok || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), private) || strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("the error shows the secret: %v", err)
			}
			if got := users(t, k, "example.com/a"); len(got) != 1 || got[0] != "good" {
				t.Errorf("the other secret is lost: %q", got)
			}
		})
	}
}
