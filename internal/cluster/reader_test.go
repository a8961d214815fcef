// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// many is a cluster with so many objects of one size, which it gives page by page.
type many struct {
	client.Client
	count, size int
	largest     int // bytes of a page
}

func (m *many) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	at, _ := strconv.Atoi(asked.Continue)
	into := list.(*unstructured.UnstructuredList)
	for range min(int(asked.Limit), m.count-at) {
		object := unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": strings.Repeat("x", m.size)}}}
		object.SetName(fmt.Sprint("n", at))
		into.Items = append(into.Items, object)
		at++
	}
	m.largest = max(m.largest, m.size*len(into.Items))
	if at < m.count {
		into.SetContinue(strconv.Itoa(at))
	}
	return nil
}

func TestAListIsBoundedByItsSizeToo(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	for _, c := range []struct {
		count, size int
		want        string
	}{
		{2000, 100, ""},
		{20, 1 << 20, ""},
		{500, 1 << 20, "larger than 32 MiB"},
		{20_000, 10, "more than 10000 objects"},
	} {
		cluster := &many{count: c.count, size: c.size}
		found, err := Reader(cluster).List(t.Context(), kind, "")
		if c.want == "" && (err != nil || len(found) != c.count) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d of %d bytes: %d, %v, want %q", c.count, c.size, len(found), err, c.want)
		}
		if most := firstPage << 20; cluster.largest > most {
			t.Errorf("%d of %d bytes: a page has %d bytes", c.count, c.size, cluster.largest)
		}
	}
}
