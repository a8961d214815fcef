// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"testing"
	"testing/fstest"

	"rukpak.io/rukpak/provisioner/provisionertest"
)

func TestConformance(t *testing.T) {
	disk := fstest.MapFS{"disk.img": {Data: []byte("an image")}, "deploy/app.yaml": {Data: []byte("not: applied")}}
	provisionertest.Run(t, provisionertest.Subject{
		Provisioner: New(),
		Good:        []provisionertest.Case{{Name: "Files", Content: disk}},
		Bad: []provisionertest.Case{
			{Name: "Parameters", Content: disk, Parameters: []byte(`{"a":1}`), File: "parameters"},
			{Name: "Config", Content: disk, Config: []byte(`{"b":1,"a":2}`), File: "config"},
			{Name: "NoObject", Content: disk, Config: []byte(`[]`), File: "config"},
			{Name: "OnlyFolders", Content: fstest.MapFS{"a/b": {Mode: 0o755 | 1<<31}}, Whole: true},
		},
	})
}
