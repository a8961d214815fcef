// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

// Manifests are RegistryConfig objects, and what they name, from files.
type Manifests struct {
	Configs    []v1alpha1.RegistryConfig
	secrets    map[string]*corev1.Secret
	configMaps map[string]*corev1.ConfigMap
}

var _ Reader = &Manifests{}

// Namespace is the manager's.
func (m *Manifests) Namespace() string { return DefaultNamespace }

// Secret of the files.
func (m *Manifests) Secret(_ context.Context, name string) (*corev1.Secret, error) {
	if found := m.secrets[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

// ConfigMap of the files.
func (m *Manifests) ConfigMap(_ context.Context, name string) (*corev1.ConfigMap, error) {
	if found := m.configMaps[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

// Read reads a file of manifests, or all in a folder that end in .yaml, .yml or
// .json, into a document. Problems of rules become notes.
func Read(ctx context.Context, path string) (*rules.Document, error) {
	manifests, err := readManifests(path)
	if err != nil {
		return nil, err
	}
	if len(manifests.Configs) == 0 {
		return nil, fmt.Errorf("%s holds no RegistryConfig", path)
	}
	compiled, err := Compile(ctx, manifests.Configs, manifests)
	if err != nil {
		return nil, err
	}
	found := &rules.Document{Rules: compiled.Rules}
	for i := range manifests.Configs {
		name := manifests.Configs[i].Name
		for _, problem := range compiled.Verdicts[name].Problems {
			found.Note("RegistryConfig "+name, problem.Text)
		}
	}
	return found, nil
}

func readManifests(path string) (*Manifests, error) {
	files := []string{path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		files = nil
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			switch filepath.Ext(entry.Name()) {
			case ".yaml", ".yml", ".json":
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	found := &Manifests{}
	var failures []error
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = found.Parse(file, data)
		}
		failures = append(failures, err)
	}
	return found, errors.Join(failures...)
}

// Parse adds the objects of one file. Objects of other kinds are passed over.
// Errors name file and line.
func (m *Manifests) Parse(file string, data []byte) error {
	if m.secrets == nil {
		m.secrets, m.configMaps = map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return yamlError(file, err)
		}
		text, err := yamlv3.Marshal(&node)
		if err != nil {
			return yamlError(file, err)
		}
		if err := m.add(text); err != nil {
			return &tomlfile.Error{File: file, Line: line(&node), Problem: strings.Join(strings.Fields(err.Error()), " ")}
		}
	}
}

func line(node *yamlv3.Node) int {
	if len(node.Content) > 0 {
		return node.Content[0].Line
	}
	return node.Line
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func yamlError(file string, err error) error {
	found := &tomlfile.Error{File: file, Problem: "it is not YAML"}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		found.Line, _ = strconv.Atoi(m[1])
		_, text, _ := strings.Cut(err.Error(), m[0])
		found.Problem += ": " + text
	}
	return found
}

func (m *Manifests) add(text []byte) error {
	var kind struct {
		metav1.TypeMeta
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return errors.New("it is no object of Kubernetes")
	}
	if strings.HasSuffix(kind.Kind, "List") { // as kubectl prints several
		var failures []error
		for _, item := range kind.Items {
			failures = append(failures, m.add(item))
		}
		return errors.Join(failures...)
	}
	switch kind.APIVersion + " " + kind.Kind {
	case v1alpha1.GroupVersion.String() + " RegistryConfig":
		var config v1alpha1.RegistryConfig
		if err := yaml.UnmarshalStrict(text, &config); err != nil {
			return fmt.Errorf("RegistryConfig: %w", err)
		}
		if err := check(&config); err != nil {
			return fmt.Errorf("RegistryConfig %s: %w", config.Name, err)
		}
		m.Configs = append(m.Configs, config)
	case "v1 Secret":
		secret := &corev1.Secret{}
		if err := yaml.Unmarshal(text, secret); err != nil {
			return errors.New("Secret: it does not parse") // what the error quotes may be secret
		}
		for key, value := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[key] = []byte(value)
		}
		m.secrets[secret.Name] = secret
	case "v1 ConfigMap":
		configMap := &corev1.ConfigMap{}
		if err := yaml.Unmarshal(text, configMap); err != nil {
			return fmt.Errorf("ConfigMap: %w", err)
		}
		m.configMaps[configMap.Name] = configMap
	}
	return nil
}
