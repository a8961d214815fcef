// SPDX-License-Identifier: Apache-2.0

// Package configuration says how the parts of an instance's configuration become one.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// before Render: in the manager, and in the command line that renders without one.
package configuration

// Merge puts over into it: mappings field by field, all else is replaced, also by null.
func Merge(into, over map[string]any) {
	for name, value := range over {
		inner, isMapping := value.(map[string]any)
		if present, both := into[name].(map[string]any); isMapping && both {
			Merge(present, inner)
			continue
		}
		into[name] = value
	}
}
