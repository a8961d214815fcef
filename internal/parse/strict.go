// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
	"strings"

	kjson "sigs.k8s.io/json"

	"rukpak.io/rukpak/provisioner"
)

// Strict reads parameters or a configuration, which may be absent. It is strict, also about upper and lower case, so that a
// mistyped option is not taken for none. what is "parameters" or "config", and known lists the fields that there are.
func Strict(raw json.RawMessage, into any, what, known string) error {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	switch {
	case err != nil:
		return &provisioner.InputError{File: what, Reason: strings.TrimPrefix(err.Error(), "json: ")}
	case len(strict) > 0:
		return &provisioner.InputError{File: what, Reason: strict[0].Error() + ": there are " + known}
	}
	return nil
}
