// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rukpak.io/rukpak/internal/source/web"
)

func TestSecretsOfWebServers(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		want web.Credentials
		err  string
	}{
		"Empty":        {nil, web.Credentials{}, ""},
		"Basic":        {map[string]string{"username": "ann", "password": "hunter2\n"}, web.Credentials{Username: "ann", Password: "hunter2"}, ""},
		"UsernameOnly": {map[string]string{"username": "hunter2"}, web.Credentials{Username: "hunter2"}, ""},
		"Bearer":       {map[string]string{"bearerToken": "hunter2\r\n"}, web.Credentials{Token: "hunter2"}, ""},
		"Header":       {map[string]string{"header.private-token": "hunter2"}, web.Credentials{Headers: http.Header{"Private-Token": {"hunter2"}}}, ""},
		"Typo":         {map[string]string{"token": "hunter2"}, web.Credentials{}, `key "token" means nothing; known are username,`},
		"Both":         {map[string]string{"username": "ann", "bearerToken": "hunter2"}, web.Credentials{}, "it has both"},
		"NoUser":       {map[string]string{"password": "hunter2"}, web.Credentials{}, `key "username" is missing`},
		"HeaderBreak":  {map[string]string{"header.A": "hunter2\nB: c"}, web.Credentials{}, `key "header.A"`},
		"HeaderName":   {map[string]string{"header.": "hunter2"}, web.Credentials{}, `key "header."`},
		"TokenBreak":   {map[string]string{"bearerToken": "hunter2\nB: c"}, web.Credentials{}, `key "bearerToken"`},
		"CA":           {map[string]string{"ca.crt": "hunter2"}, web.Credentials{}, "the CA holds no certificate"},
		"Pair":         {map[string]string{"tls.crt": "hunter2", "tls.key": "hunter2"}, web.Credentials{}, "are not a pair"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{}}
			for key, value := range tc.data {
				secret.Data[key] = []byte(value)
			}
			got, err := webCredentials(secret)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
