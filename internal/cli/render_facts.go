// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"

	"rukpak.io/rukpak/internal/cluster"
	"rukpak.io/rukpak/internal/cluster/offline"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/provisioner"
)

// renderFacts are those of a cluster, or of one that is assumed.
type renderFacts struct {
	cluster provisioner.Cluster
	reader  provisioner.Reader // nil where there is no cluster
	scope   manifest.Scope
}

func (f *renderFlags) facts(ctx context.Context, s *session) (*renderFacts, error) {
	definitions, err := f.readDefinitions(s)
	if err != nil {
		return nil, err
	}
	assumed := offline.New(definitions...)
	if f.live {
		return f.liveFacts(ctx, s)
	}
	version := f.kubeVersion
	if version == "" {
		version = offline.Version
	}
	return &renderFacts{cluster: assumed.Cluster(version, f.apiVersions...), scope: assumed.Scope}, nil
}

// liveFacts asks the cluster.
func (f *renderFlags) liveFacts(ctx context.Context, s *session) (*renderFacts, error) {
	as, err := s.client()
	if err != nil {
		return nil, err
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := cluster.NewFacts(kinds).Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if f.kubeVersion != "" {
		served.Version = f.kubeVersion
	}
	mapper := as.RESTMapper()
	return &renderFacts{cluster: served, reader: cluster.Reader(as), scope: func(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return false, false, nil
		}
		if err != nil {
			return false, false, err
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
	}}, nil
}

// maxDefinitions is the largest file of definitions, in bytes. Some operators have several MiB of them.
const maxDefinitions = 64 << 20

// readDefinitions reads the CustomResourceDefinitions in files; what else is in them is passed over.
func (f *renderFlags) readDefinitions(s *session) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range f.definitions {
		text, err := s.readUpTo(file, maxDefinitions)
		if err != nil {
			return nil, failf(ExitUsage, "--crds: %w", err)
		}
		found, err := definitionsIn(text)
		if err != nil {
			return nil, failf(ExitUsage, "--crds: %s: %w", file, err)
		}
		if len(found) == 0 {
			return nil, failf(ExitUsage, "--crds: there is no CustomResourceDefinition of apiextensions.k8s.io/v1 in %s", file)
		}
		all = append(all, found...)
	}
	return all, nil
}

func definitionsIn(text []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		var kind struct {
			APIVersion, Kind string
			Items            []json.RawMessage
		}
		if len(document) == 0 || string(document) == "null" {
			continue
		}
		if err := json.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		for _, item := range append(kind.Items, document) {
			one := &apiextensionsv1.CustomResourceDefinition{}
			if err := json.Unmarshal(item, one); err == nil && one.Kind == "CustomResourceDefinition" && one.APIVersion == apiextensionsv1.SchemeGroupVersion.String() {
				all = append(all, one)
			}
		}
	}
}
