// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deployments makes the Deployments. Their pods carry the annotations of the ClusterServiceVersion, and two by which operators
// know which namespaces they watch.
func (g *generator) deployments() error {
	served := g.served()
	for _, one := range g.bundle.csv.Spec.Install.Spec.Deployments {
		object := newObject("apps/v1", "Deployment", g.namespace, one.Name)
		if len(one.Label) > 0 {
			object.SetLabels(one.Label)
		}
		one.Spec["revisionHistoryLimit"] = int64(1)
		object.Object["spec"] = one.Spec
		template := one.Spec["template"].(map[string]any)
		g.annotate(template)
		pod := template["spec"].(map[string]any)
		if g.mountsCertificates() && served[one.Name] {
			mountCertificate(pod, secretName(one.Name))
		}
		if err := g.configure(object, template, pod); err != nil {
			return err
		}
		g.add(object)
	}
	return nil
}

func (g *generator) annotate(template map[string]any) {
	metadata, _ := template["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		template["metadata"] = metadata
	}
	delete(metadata, "creationTimestamp")
	annotations := map[string]any{}
	for key, value := range g.bundle.csv.Metadata.Annotations {
		annotations[key] = value
	}
	own, _ := metadata["annotations"].(map[string]any)
	maps.Copy(annotations, own)
	annotations["olm.targetNamespaces"] = strings.Join(g.targets, ",")
	annotations["olm.operatorNamespace"] = g.namespace
	metadata["annotations"] = annotations
}

// configure applies what the instance says about Deployments.
func (g *generator) configure(object *unstructured.Unstructured, template, pod map[string]any) error {
	config := g.deployment
	if config == nil {
		return nil
	}
	containers, _ := pod["containers"].([]any)
	for _, container := range containers {
		fields := container.(map[string]any)
		for _, variable := range itemsOf(config.Env) {
			put(fields, "env", variable, "name")
		}
		for _, source := range itemsOf(config.EnvFrom) {
			addOnce(fields, "envFrom", source)
		}
		for i, mount := range itemsOf(config.VolumeMounts) {
			if taken(fields, "volumeMounts", mount, "mountPath") {
				return refuse("config", "deploymentConfig.volumeMounts[%d]: the container %q of Deployment %q has something at %q already", i, fields["name"], object.GetName(), mount["mountPath"])
			}
			addOnce(fields, "volumeMounts", mount)
		}
		if config.Resources != nil {
			fields["resources"] = asJSON(config.Resources)
		}
	}
	for i, volume := range itemsOf(config.Volumes) {
		if taken(pod, "volumes", volume, "name") {
			return refuse("config", "deploymentConfig.volumes[%d]: Deployment %q has a volume %q already", i, object.GetName(), volume["name"])
		}
		addOnce(pod, "volumes", volume)
	}
	for _, toleration := range itemsOf(config.Tolerations) {
		addOnce(pod, "tolerations", toleration)
	}
	if config.NodeSelector != nil {
		pod["nodeSelector"] = asJSON(config.NodeSelector)
	}
	g.place(pod)
	g.annotateMore(object, template)
	return nil
}

// place sets the affinities that are given, and leaves the others.
func (g *generator) place(pod map[string]any) {
	if g.deployment.Affinity == nil {
		return
	}
	affinity, _ := pod["affinity"].(map[string]any)
	if affinity == nil {
		affinity = map[string]any{}
		pod["affinity"] = affinity
	}
	maps.Copy(affinity, asJSON(g.deployment.Affinity).(map[string]any))
}

// annotateMore never replaces an annotation.
func (g *generator) annotateMore(object *unstructured.Unstructured, template map[string]any) {
	if len(g.deployment.Annotations) == 0 {
		return
	}
	object.SetAnnotations(g.deployment.Annotations)
	annotations := template["metadata"].(map[string]any)["annotations"].(map[string]any)
	for key, value := range g.deployment.Annotations {
		if _, there := annotations[key]; !there {
			annotations[key] = value
		}
	}
}

// itemsOf gives a list of structs as maps.
func itemsOf[T any](items []T) (out []map[string]any) {
	for _, item := range items {
		out = append(out, asJSON(item).(map[string]any))
	}
	return out
}

// put replaces the item of a list that has the same key, or adds one.
func put(in map[string]any, field string, item map[string]any, key string) {
	list, _ := in[field].([]any)
	for i, other := range list {
		if other.(map[string]any)[key] == item[key] {
			list[i] = item
			return
		}
	}
	in[field] = append(list, any(item))
}

// taken tells whether a list has another item with the same key.
func taken(in map[string]any, field string, item map[string]any, key string) bool {
	list, _ := in[field].([]any)
	return slices.ContainsFunc(list, func(other any) bool {
		return other.(map[string]any)[key] == item[key] && !reflect.DeepEqual(other, any(item))
	})
}

// addOnce adds an item unless the list has it.
func addOnce(in map[string]any, field string, item map[string]any) {
	list, _ := in[field].([]any)
	if !slices.ContainsFunc(list, func(other any) bool { return reflect.DeepEqual(other, any(item)) }) {
		in[field] = append(list, any(item))
	}
}
