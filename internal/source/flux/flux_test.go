// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/source"
)

// Whoever may write the status of a Flux object says what is in it.
func FuzzArtifact(f *testing.F) {
	f.Add([]byte(`{"status":{"artifact":{"url":"http://a/b.tgz","digest":"sha256:` + strings.Repeat("0", 64) + `","revision":"v1"}}}`))
	f.Add([]byte(`{"status":{"artifact":{"url":1,"digest":[],"revision":{}}}}`))
	f.Add([]byte(`{"status":{"conditions":[1,{"type":"Ready","status":"False","reason":1,"message":["a\nb"]}]}}`))
	f.Add([]byte(`{"status":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(data, &object.Object) != nil {
			return
		}
		object.SetName("app")
		artifact, err := ArtifactOf(object, "spec.sources[0]")
		if err != nil {
			if source.KindOf(err) != source.Waiting || source.ReasonOf(err) == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if artifact.Digest.Validate() != nil || artifact.Digest.Algorithm() != digest.SHA256 || artifact.URL == "" {
			t.Errorf("%+v is taken", artifact)
		}
	})
}
