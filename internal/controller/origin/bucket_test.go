// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rukpak.io/rukpak/internal/source/bucket"
)

func TestSecretsOfBuckets(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		want bucket.Source
		err  string
	}{
		"Empty":   {nil, bucket.Source{}, ""},
		"Keys":    {map[string]string{"accessKey": "ann\n", "secretKey": "hunter2\n"}, bucket.Source{AccessKey: "ann", SecretKey: "hunter2"}, ""},
		"Session": {map[string]string{"accessKey": "ann", "secretKey": "hunter2", "sessionToken": "t"}, bucket.Source{AccessKey: "ann", SecretKey: "hunter2", SessionToken: "t"}, ""},
		"Half":    {map[string]string{"secretKey": "hunter2"}, bucket.Source{}, "belong together"},
		"Token":   {map[string]string{"sessionToken": "hunter2"}, bucket.Source{}, "belong together"},
		"Typo":    {map[string]string{"accesskey": "hunter2"}, bucket.Source{}, `key "accesskey" means nothing; known are accessKey,`},
		"Break":   {map[string]string{"accessKey": "hunter2\nx", "secretKey": "hunter2"}, bucket.Source{}, "line breaks"},
		"CA":      {map[string]string{"ca.crt": "hunter2"}, bucket.Source{}, "the CA holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{}}
			for key, value := range tc.data {
				secret.Data[key] = []byte(value)
			}
			var got bucket.Source
			err := bucketKeys(secret, &got)
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
