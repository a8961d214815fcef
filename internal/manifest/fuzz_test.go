// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"testing"
)

// Secrets with manifests can be written by whoever may write Secrets.
func FuzzManifests(f *testing.F) {
	packed, err := Pack([]byte(`{"format":"x"}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed[0], []byte(`{"format":"`+format+`","phases":[{"name":"deploy","objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}]}`))
	f.Add(packed[0][:len(packed[0])-1], []byte(`{"format":"`+format+`","phases":[{"objects":[null,1,"a",[]]}]}`))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd}, []byte(`{}`))
	f.Fuzz(func(t *testing.T, part, encoded []byte) {
		if out, err := Unpack([][]byte{part, nil}); err == nil && len(out) > MaxBytes {
			t.Errorf("%d bytes came out", len(out))
		}
		set, err := Decode(encoded)
		if err != nil {
			if !errors.Is(err, ErrFormat) && len(encoded) <= MaxBytes {
				t.Errorf("the error is not one of the format: %v", err)
			}
			return
		}
		first, err := set.Encode()
		if err != nil {
			return // what no provisioner gives, such as an object without a name
		}
		again, err := Decode(first)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
		if second, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("encoding again gives other bytes: %v", err)
		}
	})
}
