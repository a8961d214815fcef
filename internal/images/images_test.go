// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/images"
)

type m = map[string]any

func object(kind string, fields m) *unstructured.Unstructured {
	fields["apiVersion"], fields["kind"], fields["metadata"] = "v1", kind, m{"name": "a"}
	return &unstructured.Unstructured{Object: fields}
}

func TestImagesAreFoundWhereverPodsNameThem(t *testing.T) {
	pod := m{
		"initContainers": []any{m{"image": "init:1"}}, "ephemeralContainers": []any{m{"image": "debug:1"}},
		"containers": []any{m{"image": "main:1", "env": []any{
			m{"name": "RELATED_IMAGE_PROXY", "value": "proxy:1"}, m{"name": "RELATED_IMAGE_FROM", "valueFrom": m{}}, m{"name": "IMAGE", "value": "other:1"},
		}}, m{"name": "no image"}, "no container"},
		"volumes": []any{m{"image": m{"reference": "files:1"}}, m{"emptyDir": m{}}},
	}
	want := []string{"init:1 initContainer", "main:1 container", "proxy:1 environment", "debug:1 ephemeralContainer", "files:1 volume"}
	for kind, fields := range map[string]m{
		"Pod":         {"spec": pod},
		"Deployment":  {"spec": m{"template": m{"spec": pod}}},
		"CronJob":     {"spec": m{"jobTemplate": m{"spec": m{"template": m{"spec": pod}}}}},
		"PodTemplate": {"template": m{"spec": pod}},
	} {
		var got []string
		for _, use := range images.In([]*unstructured.Unstructured{object(kind, fields)}) {
			got = append(got, use.Reference+" "+string(use.Place))
			if use.Object.Kind != kind {
				t.Errorf("%s: the object is %s", kind, use.Object)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	for name, fields := range map[string]m{"text": {"spec": "x"}, "null": {"spec": nil}, "list": {"spec": m{"containers": m{}, "volumes": "x"}}, "none": {}} {
		if found := images.In([]*unstructured.Unstructured{object("Odd", fields)}); len(found) > 0 {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
