// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// mix says how many objects of which kind. In a mix of 1,000 there are 500 ConfigMaps, 200 Services, 200 Deployments
// and 100 Roles.
type mix struct{ configMaps, services, deployments, roles int }

func mixOf(total int) mix {
	m := mix{services: total / 5, deployments: total / 5, roles: total / 10}
	m.configMaps = total - m.services - m.deployments - m.roles
	return m
}

// objects makes the mix. Names begin with prefix; an edition other than 0 makes the content of the ConfigMaps below
// changed differ.
func (m mix) objects(prefix string, edition, changed int) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	add := func(n int, kind string, make func(name string, i int) map[string]any) {
		for i := range n {
			name := fmt.Sprintf("%s-%s-%03d", prefix, kind, i)
			all = append(all, &unstructured.Unstructured{Object: make(name, i)})
		}
	}
	add(m.configMaps, "config", func(name string, i int) map[string]any {
		shown := 0
		if i < changed {
			shown = edition
		}
		return configMap(name, shown)
	})
	add(m.services, "service", service)
	add(m.deployments, "deployment", deployment)
	add(m.roles, "role", role)
	return all
}

func object(apiVersion, kind, name string, more map[string]any) map[string]any {
	out := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app.kubernetes.io/name": name}},
	}
	for key, value := range more {
		out[key] = value
	}
	return out
}

func configMap(name string, edition int) map[string]any {
	return object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{
		"edition": fmt.Sprint(edition), "name": name, "settings.yaml": strings.Repeat("key: value that says something\n", 20),
	}})
}

func service(name string, _ int) map[string]any {
	return object("v1", "Service", name, map[string]any{"spec": map[string]any{
		"selector": map[string]any{"app.kubernetes.io/name": name},
		"ports":    []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(8080)}},
	}})
}

// deployment has no replicas: its Pods would cost more than all that is measured.
func deployment(name string, _ int) map[string]any {
	labels := map[string]any{"app.kubernetes.io/name": name}
	container := map[string]any{
		"name": "main", "image": "example.com/app:1", "args": []any{"--listen=:8080", "--name=" + name},
		"ports":     []any{map[string]any{"name": "http", "containerPort": int64(8080)}},
		"env":       []any{map[string]any{"name": "MODE", "value": "production"}},
		"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "16Mi"}},
	}
	return object("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}},
		},
	}})
}

func role(name string, _ int) map[string]any {
	rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get", "list", "watch"}}
	return object("rbac.authorization.k8s.io/v1", "Role", name, map[string]any{"rules": []any{rule}})
}

// file writes objects as one file of YAML documents.
func file(objects []*unstructured.Unstructured) ([]byte, error) {
	var out []byte
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}
