// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/configuration"
	"rukpak.io/rukpak/internal/parse"
)

// maxConfig is the largest part of a configuration, in bytes: an object of the API is not larger.
const maxConfig = 1 << 20

// Accounts gives clients that act as service accounts.
type Accounts interface {
	Client(namespace, account string) (client.Client, error)
}

// findConfig merges the parts of the configuration. They are read as the service account, so that nobody gets a Secret
// rendered that the account may not see. A rollback needs no configuration.
func (c *Controller) findConfig(ctx context.Context, w *work) error {
	w.config = raw(w.instance.Spec.Config)
	if err := parse.Deep(w.config); err != nil {
		return &Hold{Reason: v1alpha1.ReasonInvalidConfig, Message: "spec.config cannot be used: " + err.Error()}
	}
	if len(w.instance.Spec.ConfigFrom) == 0 || w.instance.Spec.RollbackTo != nil {
		return nil
	}
	if err := c.watchConfig(); err != nil {
		return err
	}
	as, err := c.Accounts.Client(w.instance.Namespace, w.account)
	if err != nil {
		return err
	}
	merged := map[string]any{}
	for i, ref := range w.instance.Spec.ConfigFrom {
		part, err := readPart(ctx, as, w, ref, fmt.Sprintf("spec.configFrom[%d]", i))
		if err != nil {
			return err
		}
		configuration.Merge(merged, part)
	}
	inline := map[string]any{}
	if len(w.config) > 0 {
		if err := utiljson.Unmarshal(w.config, &inline); err != nil {
			return &Hold{Reason: v1alpha1.ReasonInvalidConfig, Message: "spec.config is not an object: " + err.Error()}
		}
	}
	configuration.Merge(merged, inline)
	w.config, err = json.Marshal(merged)
	return err
}

// readPart reads one part as a mapping; nil if it is optional and absent.
func readPart(ctx context.Context, as client.Client, w *work, ref v1alpha1.ConfigReference, field string) (map[string]any, error) {
	value, found, err := readValue(ctx, as, w.instance.Namespace, ref)
	name := fmt.Sprintf("%s: %s %q", field, ref.Kind, ref.Name)
	switch {
	case apierrors.IsForbidden(err):
		return nil, &Hold{Reason: v1alpha1.ReasonConfigNotFound, Retry: true, Message: fmt.Sprintf(
			"%s cannot be read by ServiceAccount %q: let it \"get\" %ss of that name in namespace %q", name, w.account, strings.ToLower(ref.Kind), w.instance.Namespace)}
	case apierrors.IsNotFound(err) && ref.Optional:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, &Hold{Reason: v1alpha1.ReasonConfigNotFound, Retry: true, Message: fmt.Sprintf("%s does not exist in namespace %q", name, w.instance.Namespace)}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !found && ref.Optional:
		return nil, nil
	case !found:
		return nil, &Hold{Reason: v1alpha1.ReasonConfigNotFound, Retry: true, Message: fmt.Sprintf("%s has no key %q", name, keyOf(ref))}
	}
	part, fault := parsePart(value, ref)
	if fault != "" {
		return nil, &Hold{Reason: v1alpha1.ReasonInvalidConfig, Retry: true, Message: fmt.Sprintf("%s, key %q: %s", name, keyOf(ref), fault)}
	}
	return part, nil
}

func keyOf(ref v1alpha1.ConfigReference) string {
	if ref.Key == "" {
		return "values.yaml"
	}
	return ref.Key
}

func readValue(ctx context.Context, as client.Client, namespace string, ref v1alpha1.ConfigReference) ([]byte, bool, error) {
	at := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	if ref.Kind == "Secret" {
		secret := &corev1.Secret{}
		if err := as.Get(ctx, at, secret); err != nil {
			return nil, false, err
		}
		value, found := secret.Data[keyOf(ref)]
		return value, found, nil
	}
	configMap := &corev1.ConfigMap{}
	if err := as.Get(ctx, at, configMap); err != nil {
		return nil, false, err
	}
	if text, found := configMap.Data[keyOf(ref)]; found {
		return []byte(text), true, nil
	}
	value, found := configMap.BinaryData[keyOf(ref)]
	return value, found, nil
}

// lineOf finds where a parser stopped. The rest of what parsers say may quote the value, which may be secret.
var lineOf = regexp.MustCompile(`line \d+`)

// parsePart gives the mapping that a value stands for, or what is wrong with it.
func parsePart(value []byte, ref v1alpha1.ConfigReference) (part map[string]any, fault string) {
	if len(value) > maxConfig {
		return nil, fmt.Sprintf("it has more than %d bytes", maxConfig)
	}
	if ref.TargetPath != "" {
		return at(ref.TargetPath, strings.TrimRight(string(value), "\r\n"))
	}
	if err := parse.Expands(value); err != nil {
		return nil, notYAML(err, ref)
	}
	encoded, err := yaml.YAMLToJSONStrict(value)
	if err != nil {
		return nil, notYAML(err, ref)
	}
	if trimmed := bytes.TrimSpace(encoded); string(trimmed) == "null" {
		return nil, ""
	}
	if err := utiljson.Unmarshal(encoded, &part); err != nil {
		return nil, "it is no mapping of names to values"
	}
	return part, ""
}

// notYAML says what a parser found, without what may be secret.
func notYAML(err error, ref v1alpha1.ConfigReference) string {
	var aliases *parse.ExpansionError
	if errors.As(err, &aliases) || errors.Is(err, parse.ErrDeep) {
		return "its YAML cannot be used: " + err.Error()
	}
	fault := "it is no YAML"
	if line := lineOf.FindString(err.Error()); line != "" {
		fault += ", at " + line
	}
	if ref.Kind != "Secret" {
		fault += ": " + err.Error()
	}
	return fault
}

// at puts a text at a path of fields.
func at(path, text string) (map[string]any, string) {
	root := map[string]any{}
	var into = root
	names := fields(path)
	for i, name := range names {
		if name == "" {
			return nil, fmt.Sprintf("targetPath %q has an empty name: write names of fields with single dots between them", path)
		}
		if i == len(names)-1 {
			into[name] = text
			break
		}
		next := map[string]any{}
		into[name], into = next, next
	}
	return root, ""
}

// fields splits at dots that no backslash stands before.
func fields(path string) []string {
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '.':
			name.WriteByte('.')
			i++
		case path[i] == '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(path[i])
		}
	}
	return append(names, name.String())
}
