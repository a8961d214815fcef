// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"rukpak.io/rukpak/api/v1alpha1"
)

// defaultConfigKey is the key of a part that names none, as the API has it.
const defaultConfigKey = "values.yaml"

// parseConfigFrom reads "configmap/NAME[:KEY][=TARGETPATH]" and "secret/...".
func parseConfigFrom(text string) (v1alpha1.ConfigReference, error) {
	wrong := func(why string) (v1alpha1.ConfigReference, error) {
		return v1alpha1.ConfigReference{}, failf(ExitUsage, "--config-from %q: %s", text, why).
			hintf("it is configmap/NAME[:KEY][=TARGETPATH] or secret/NAME[:KEY][=TARGETPATH]")
	}
	kind, rest, _ := strings.Cut(text, "/")
	ref := v1alpha1.ConfigReference{Kind: map[string]string{"configmap": "ConfigMap", "cm": "ConfigMap", "secret": "Secret"}[strings.ToLower(kind)]}
	if ref.Kind == "" {
		return wrong("it begins with neither configmap/ nor secret/")
	}
	rest, target, atPath := strings.Cut(rest, "=")
	name, key, withKey := strings.Cut(rest, ":")
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return wrong("the name: " + faults[0])
	}
	if !withKey {
		key = defaultConfigKey
	}
	if faults := validation.IsConfigMapKey(key); len(faults) > 0 {
		return wrong("the key: " + faults[0])
	}
	if atPath && target == "" {
		return wrong("nothing stands behind =")
	}
	ref.Name, ref.Key, ref.TargetPath = name, key, target
	return ref, nil
}

// configFrom reads all values of the flag. One that is empty stands for no parts.
func configFrom(values []string) ([]v1alpha1.ConfigReference, error) {
	var all []v1alpha1.ConfigReference
	for _, value := range values {
		if value == "" && len(values) == 1 {
			return nil, nil
		}
		ref, err := parseConfigFrom(value)
		if err != nil {
			return nil, err
		}
		all = append(all, ref)
	}
	return all, nil
}

// configFromText says it as the flag does.
func configFromText(ref v1alpha1.ConfigReference) string {
	text := strings.ToLower(ref.Kind) + "/" + ref.Name
	if ref.Key != "" && ref.Key != defaultConfigKey {
		text += ":" + ref.Key
	}
	if ref.TargetPath != "" {
		text += "=" + ref.TargetPath
	}
	if ref.Optional {
		text += " (optional)"
	}
	return text
}

// configText names the parts of a configuration, in the order in which they are merged.
func configText(spec v1alpha1.BundleInstanceSpec) string {
	var parts []string
	for _, ref := range spec.ConfigFrom {
		parts = append(parts, configFromText(ref))
	}
	if len(parts) > 0 && spec.Config != nil {
		parts = append(parts, "spec.config")
	}
	return strings.Join(parts, ", ")
}
