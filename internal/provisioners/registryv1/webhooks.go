// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rukpak.io/rukpak/provisioner"
)

const defaultPort = 443

// served are the deployments that the API server calls.
func (g *generator) served() map[string]bool {
	served := map[string]bool{}
	for _, one := range g.bundle.csv.Spec.Webhooks {
		served[one.DeploymentName] = true
	}
	for _, one := range g.bundle.csv.Spec.APIServices.Owned {
		served[one.DeploymentName] = true
	}
	return served
}

// serviceName is that of the Service before a deployment, as OLM calls it.
func serviceName(deployment string) string {
	base := strings.ReplaceAll(deployment, ".", "-")
	const suffix, most = "service", 63
	if len(base)+len(suffix) == most {
		base = base[:len(base)-1] // OLM's own name would be one too long
	}
	return objectName(base, suffix)
}

// secretName is that of the Secret with the serving certificate, as OLM calls it.
func secretName(deployment string) string { return objectName(serviceName(deployment), "cert") }

// serviceOf says which Service a webhook is behind.
func (g *generator) serviceOf(one webhookDescription) map[string]any {
	service := map[string]any{
		"namespace": g.namespace, "name": serviceName(one.DeploymentName), "port": int64(cmp.Or(one.ContainerPort, defaultPort)),
	}
	if one.WebhookPath != nil {
		service["path"] = *one.WebhookPath
	}
	return service
}

// webhooks makes a configuration for each webhook that is called on admission.
func (g *generator) webhooks() error {
	for _, one := range g.bundle.csv.Spec.Webhooks {
		kind := ""
		switch one.Type {
		case validatingWebhook:
			kind = "ValidatingWebhookConfiguration"
		case mutatingWebhook:
			kind = "MutatingWebhookConfiguration"
		default:
			continue
		}
		name := strings.TrimSuffix(one.GenerateName, "-")
		hook := map[string]any{
			"name": name, "clientConfig": map[string]any{"service": g.serviceOf(one)}, "admissionReviewVersions": asJSON(orNone(one.AdmissionReviewVersions)),
		}
		setText(hook, "failurePolicy", one.FailurePolicy)
		setText(hook, "matchPolicy", one.MatchPolicy)
		setText(hook, "sideEffects", one.SideEffects)
		if one.Type == mutatingWebhook {
			setText(hook, "reinvocationPolicy", one.ReinvocationPolicy)
		}
		if one.TimeoutSeconds != nil {
			hook["timeoutSeconds"] = *one.TimeoutSeconds
		}
		if one.ObjectSelector != nil {
			hook["objectSelector"] = one.ObjectSelector
		}
		if len(one.Rules) > 0 {
			var rules []any
			for _, rule := range one.Rules {
				rules = append(rules, rule)
			}
			hook["rules"] = rules
		}
		if !g.everywhere() {
			hook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
				"key": "kubernetes.io/metadata.name", "operator": "In", "values": asJSON(g.targets),
			}}}
		}
		object := newObject("admissionregistration.k8s.io/v1", kind, "", name)
		object.Object["webhooks"] = []any{hook}
		g.certify(object, one.DeploymentName)
		g.add(object)
	}
	return nil
}

func setText(in map[string]any, field string, value *string) {
	if value != nil {
		in[field] = *value
	}
}

// apiServices registers the APIs that the bundle serves itself, and lets their servers ask who may do what, as OLM v0 does.
func (g *generator) apiServices() error {
	for _, one := range g.bundle.csv.Spec.APIServices.Owned {
		service := serviceName(one.DeploymentName)
		object := newObject("apiregistration.k8s.io/v1", "APIService", "", one.Version+"."+one.Group)
		object.Object["spec"] = map[string]any{
			"group": one.Group, "version": one.Version, "groupPriorityMinimum": int64(2000), "versionPriority": int64(20),
			"service": map[string]any{"namespace": g.namespace, "name": service, "port": int64(cmp.Or(one.ContainerPort, defaultPort))},
		}
		g.certify(object, one.DeploymentName)
		g.add(object)
		account := g.accountOf(one.DeploymentName)
		g.addBinding("ClusterRoleBinding", "", service+"-system:auth-delegator", "ClusterRole", "system:auth-delegator", account)
		g.addBinding("RoleBinding", "kube-system", service+"-auth-reader", "Role", "extension-apiserver-authentication-reader", account)
	}
	return nil
}

func (g *generator) accountOf(name string) string {
	for _, one := range g.bundle.csv.Spec.Install.Spec.Deployments {
		if one.Name == name {
			account, _, _ := unstructured.NestedString(one.Spec, "template", "spec", "serviceAccountName")
			return cmp.Or(account, "default")
		}
	}
	return "default"
}

type port struct {
	number int32
	target intstr.IntOrString
}

// services makes the Services before the deployments that the API server calls.
func (g *generator) services() {
	ports := map[string][]port{}
	for _, one := range g.bundle.csv.Spec.Webhooks {
		at := port{number: cmp.Or(one.ContainerPort, defaultPort)}
		at.target = intstr.FromInt32(at.number)
		if one.TargetPort != nil {
			at.target = *one.TargetPort
		}
		ports[one.DeploymentName] = append(ports[one.DeploymentName], at)
	}
	for _, one := range g.bundle.csv.Spec.APIServices.Owned {
		number := cmp.Or(one.ContainerPort, defaultPort)
		ports[one.DeploymentName] = append(ports[one.DeploymentName], port{number, intstr.FromInt32(number)})
	}
	for _, one := range g.bundle.csv.Spec.Install.Spec.Deployments {
		if len(ports[one.Name]) > 0 {
			g.addService(one, ports[one.Name])
		}
	}
}

func (g *generator) addService(before deployment, ports []port) {
	slices.SortFunc(ports, func(a, b port) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.target.String(), b.target.String()))
	})
	var list []any
	for i, one := range slices.Compact(ports) {
		if i > 0 && ports[i-1].number == one.number {
			g.faults = append(g.faults, &provisioner.InputError{
				File: g.bundle.csvPlace.File, Line: g.bundle.csvPlace.Line, Object: csvKind + " " + g.bundle.csv.Metadata.Name,
				Reason: "webhooks of deployment " + before.Name + " have one containerPort and two targetPorts: give them different ports",
			})
		}
		list = append(list, map[string]any{"name": strconv.Itoa(int(one.number)), "port": int64(one.number), "targetPort": asJSON(one.target)})
	}
	spec := map[string]any{"ports": list}
	selector, _ := before.Spec["selector"].(map[string]any)
	if labels, _ := selector["matchLabels"].(map[string]any); len(labels) > 0 {
		spec["selector"] = labels
	}
	service := newObject("v1", "Service", g.namespace, serviceName(before.Name))
	service.Object["spec"] = spec
	g.add(service)
}
