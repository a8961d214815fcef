// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
)

// Pull secrets are written by tenants, and read by the manager.
func FuzzPullSecrets(f *testing.F) {
	for _, seed := range []string{
		`{"auths":{"example.com":{"auth":"YW5uOmh1bnRlcjIyMg=="}}}`,
		`{"auths":{"https://index.docker.io/v1/":{"username":"ann","password":"hunter222"}}}`,
		`{"auths":{"*.example.com:5000/team":{"identitytoken":"hunter222"},"":{}}}`,
		"{\"auths\":{\"\u212a\u212a:5\":{}}}", // letters that get shorter in lower case
		`{"auths":{"[::1]:5000":{"auth":"!"}}}`, `{"auths":[]}`, `{"example.com":{"auth":"eA=="}}`, `{`, ``,
	} {
		f.Add([]byte(seed), "example.com/team/app")
	}
	f.Fuzz(func(t *testing.T, data []byte, repository string) {
		target, err := name.NewRepository(repository)
		if err != nil {
			return
		}
		for kind, key := range map[corev1.SecretType]string{corev1.SecretTypeDockerConfigJson: corev1.DockerConfigJsonKey, corev1.SecretTypeDockercfg: corev1.DockerConfigKey} {
			secret := corev1.Secret{Type: kind, Data: map[string][]byte{key: data}}
			keys, err := FromSecrets([]corev1.Secret{secret})
			if err != nil && (strings.ContainsAny(err.Error(), "\n\r") || strings.Contains(err.Error(), "hunter222")) {
				t.Errorf("the error must be one line and show nothing: %q", err)
			}
			keys.Candidates(target)
		}
		if logins, err := LoginsOfFile(data); err == nil {
			for _, login := range logins {
				if PlaceOf(login.For) == "" {
					t.Errorf("credentials for nobody: %q", login.For)
				}
			}
		}
	})
}

func TestKeysThatGetShorterInLowerCase(t *testing.T) {
	if got := parsePattern("\u212a\u212a:5000/team"); got.host != "kk" || got.port != "5000" || got.path != "team" {
		t.Errorf("got %+v", got)
	}
}
