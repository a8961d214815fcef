// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"testing/fstest"

	"rukpak.io/rukpak/provisioner/provisionertest"
)

func TestConformance(t *testing.T) {
	shop := os.DirFS("testdata/shop")
	provisionertest.Run(t, provisionertest.Subject{
		Provisioner: properties{},
		Good: []provisionertest.Case{
			{Name: "Shop", Content: shop},
			{Name: "Configured", Content: shop, Config: []byte(`{"set": {"color": "green"}}`)},
		},
		Bad: []provisionertest.Case{
			{Name: "NoValue", Content: fstest.MapFS{"a.properties": {Data: []byte("a=1\nb\n")}}, File: "a.properties"},
			{Name: "Twice", Content: fstest.MapFS{"a/x.properties": {Data: []byte("a=1")}, "b/x.properties": {Data: []byte("a=1")}}, File: "b/x.properties"},
			{Name: "Parameters", Content: shop, Parameters: []byte(`{"a": 1}`), File: "parameters"},
			{Name: "Config", Content: shop, Config: []byte(`{"sett": {}}`), File: "config"},
		},
	})
}
