// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// checks are all that is checked of a bundle, each by itself. The first ones are OLM v1's.
var checks = map[string]func(*bundle){
	"deployment names are unique":               (*bundle).deploymentsUnique,
	"deployment names are DNS names":            (*bundle).deploymentNames,
	"definitions are unique":                    (*bundle).crdsUnique,
	"owned definitions are there":               (*bundle).ownedCRDs,
	"the package has a name":                    (*bundle).packageNamed,
	"conversion needs all namespaces":           (*bundle).conversionModes,
	"webhooks name a deployment":                (*bundle).webhookDeployments,
	"webhook names are unique":                  (*bundle).webhooksUnique,
	"webhook names are DNS names":               (*bundle).webhookNames,
	"a definition has one conversion webhook":   (*bundle).conversionUnique,
	"conversion webhooks name owned ones":       (*bundle).conversionOwned,
	"webhook rules are allowed":                 (*bundle).webhookRules,
	"kinds of objects are allowed":              (*bundle).kinds,
	"names are DNS names":                       (*bundle).names,
	"the strategy is deployment":                (*bundle).strategy,
	"there is an install mode":                  (*bundle).installModes,
	"definitions are of a served version":       (*bundle).crdVersions,
	"annotations of OLM are spelt right":        (*bundle).annotationCase,
	"API services name a deployment":            (*bundle).apiServices,
	"webhook types are known":                   (*bundle).webhookTypes,
	"definitions that are converted can be":     (*bundle).conversionPossible,
	"deployments have what is changed in them":  (*bundle).deploymentShape,
	"definitions of a webhook have one version": (*bundle).crdVersionNames,
}

const dnsRule = "it may have lower case letters, digits, '-' and '.', and begins and ends with a letter or a digit"

// check gives all that is wrong with a bundle.
func (b *bundle) check(parameters parameters) error {
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		checks[name](b)
	}
	if parameters.Constraints != constraintsIgnore {
		for _, one := range b.needs {
			b.fault(one.file, 0, "", "wants %s %s, and dependencies are not resolved here: install what it needs and depend on that by dependsOn, "+
				"and use a class with the parameter constraints: %s", one.kind, one.what, constraintsIgnore)
		}
	}
	if len(b.faults) > parse.MaxFaults {
		b.faults = b.faults[:parse.MaxFaults]
	}
	return provisioner.Join(b.faults)
}

func (b *bundle) deploymentsUnique() {
	seen := map[string]bool{}
	for _, one := range b.csv.Spec.Install.Spec.Deployments {
		if seen[one.Name] {
			b.faultOfCSV("there are two deployments %q: give them different names", one.Name)
		}
		seen[one.Name] = true
	}
}

func (b *bundle) deploymentNames() {
	for i, one := range b.csv.Spec.Install.Spec.Deployments {
		if faults := validation.IsDNS1123Subdomain(one.Name); len(faults) > 0 {
			b.faultOfCSV("install.spec.deployments[%d]: the name %q is no DNS name: "+dnsRule, i, one.Name)
		}
	}
}

// crdsUnique needs not look at names: two objects of one name are refused when they are read. But the same definition may go
// by another name.
func (b *bundle) crdsUnique() {
	seen := map[string]parse.Place{}
	for _, one := range b.crds {
		group, _, _ := unstructured.NestedString(one.Object.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(one.Object.Object, "spec", "names", "plural")
		name := plural + "." + group
		if first, twice := seen[name]; twice {
			b.fault(one.Place.File, one.Place.Line, provisioner.Describe(one.Object.Object), "%s is defined in %s already: remove one", name, first)
		}
		seen[name] = one.Place
	}
}

func (b *bundle) ownedCRDs() {
	for _, one := range b.csv.Spec.CRDs.Owned {
		if b.crd(one.Name) == nil {
			b.faultOfCSV("owns the CustomResourceDefinition %q, which is not in the bundle: add its manifest", one.Name)
		}
	}
}

func (b *bundle) packageNamed() {
	if b.packageName == "" {
		b.fault(b.metadataFile, 0, "", "does not name the package: set the annotation %s", annotationPackage)
	}
}

func (b *bundle) kinds() {
	for _, one := range b.others {
		if _, known := scopes[one.Object.GetKind()]; !known {
			b.fault(one.Place.File, one.Place.Line, provisioner.Describe(one.Object.Object), "the kind %s may not be in a bundle of OLM: there may be %s",
				one.Object.GetKind(), strings.Join(slices.Sorted(maps.Keys(scopes)), ", "))
		}
	}
}

// scopes are the kinds that a bundle may bring, besides its ClusterServiceVersion and definitions, and whether they are
// namespaced.
var scopes = map[string]bool{
	"ClusterRole": false, "ClusterRoleBinding": false, "ConfigMap": true, "ConsoleCLIDownload": false, "ConsoleLink": false, "ConsolePlugin": false,
	"ConsoleQuickStart": false, "ConsoleYAMLSample": false, "NetworkPolicy": true, "PodDisruptionBudget": true, "PriorityClass": false,
	"PrometheusRule": true, "Role": true, "RoleBinding": true, "Secret": true, "Service": true, "ServiceAccount": true, "ServiceMonitor": true,
	"VerticalPodAutoscaler": true,
}

func (b *bundle) names() {
	if faults := validation.IsDNS1123Subdomain(b.csv.Metadata.Name); len(faults) > 0 {
		b.faultOfCSV("the name is no DNS name: " + dnsRule)
	}
	b.accountNames("permissions", b.csv.Spec.Install.Spec.Permissions)
	b.accountNames("clusterPermissions", b.csv.Spec.Install.Spec.ClusterPermissions)
}

func (b *bundle) accountNames(field string, permissions []permission) {
	for i, one := range permissions {
		if faults := validation.IsDNS1123Subdomain(one.ServiceAccountName); one.ServiceAccountName != "" && len(faults) > 0 {
			b.faultOfCSV("install.spec.%s[%d].serviceAccountName %q is no DNS name: "+dnsRule, field, i, one.ServiceAccountName)
		}
	}
}

func (b *bundle) strategy() {
	if is := b.csv.Spec.Install.Strategy; is != "" && is != "deployment" {
		b.faultOfCSV("install.strategy is %q: it may be deployment", is)
	}
}

func (b *bundle) installModes() {
	if b.modes() == (modes{}) {
		b.faultOfCSV("installModes: no mode is supported, so the bundle cannot be installed anywhere: say supported for one of AllNamespaces, OwnNamespace, SingleNamespace and MultiNamespace")
	}
}

func (b *bundle) crdVersions() {
	for _, one := range b.crds {
		if version := one.Object.GetAPIVersion(); version != "apiextensions.k8s.io/v1" {
			b.fault(one.Place.File, one.Place.Line, provisioner.Describe(one.Object.Object),
				"is of %s, which Kubernetes serves no more since 1.22: write it as apiextensions.k8s.io/v1, or take a later version of the bundle", version)
		}
	}
}

func (b *bundle) crdVersionNames() {
	for _, one := range b.crds {
		versions, _, _ := unstructured.NestedFieldNoCopy(one.Object.Object, "spec", "versions")
		list, _ := versions.([]any)
		seen := map[any]bool{}
		for i, version := range list {
			fields, _ := version.(map[string]any)
			if name, isText := fields["name"].(string); isText && seen[name] {
				b.fault(one.Place.File, one.Place.Line, provisioner.Describe(one.Object.Object), "spec.versions[%d]: there is a version %q already: remove one", i, name)
			} else {
				seen[name] = true
			}
		}
	}
}

// annotationCase finds annotations that OLM would read if upper and lower case were right.
func (b *bundle) annotationCase() {
	for _, key := range slices.Sorted(maps.Keys(b.csv.Metadata.Annotations)) {
		for _, right := range []string{"olm.operatorGroup", "olm.operatorNamespace", "olm.skipRange", "olm.targetNamespaces"} {
			if key != right && strings.EqualFold(key, right) {
				b.faultOfCSV("metadata.annotations[%q]: write %s", key, right)
			}
		}
	}
}

// deploymentShape checks that what is changed in a Deployment is what it should be.
func (b *bundle) deploymentShape() {
	for i, one := range b.csv.Spec.Install.Spec.Deployments {
		if fault := shapeOf(one.Spec); fault != "" {
			b.faultOfCSV("install.spec.deployments[%d].spec%s", i, fault)
		}
	}
}

func shapeOf(spec map[string]any) string {
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return ".template is " + provisioner.TypeName(spec["template"]) + ", not a mapping"
	}
	pod, ok := template["spec"].(map[string]any)
	if !ok {
		return ".template.spec is " + provisioner.TypeName(template["spec"]) + ", not a mapping"
	}
	containers, ok := pod["containers"].([]any)
	if !ok || len(containers) == 0 {
		return ".template.spec.containers: there is no container"
	}
	for i, container := range containers {
		fields, ok := container.(map[string]any)
		at := fmt.Sprintf(".template.spec.containers[%d]", i)
		if !ok {
			return at + " is " + provisioner.TypeName(container) + ", not a mapping"
		}
		for _, list := range []string{"env", "envFrom", "volumeMounts"} {
			if fault := listOfMaps(fields[list]); fault != "" {
				return at + "." + list + fault
			}
		}
	}
	for _, list := range []string{"volumes", "tolerations"} {
		if fault := listOfMaps(pod[list]); fault != "" {
			return ".template.spec." + list + fault
		}
	}
	for _, field := range []map[string]any{pod, template, spec} {
		for _, name := range []string{"affinity", "metadata", "selector"} {
			if _, ok := field[name].(map[string]any); !ok && field[name] != nil {
				return ": " + name + " is " + provisioner.TypeName(field[name]) + ", not a mapping"
			}
		}
	}
	metadata, _ := template["metadata"].(map[string]any)
	return textsOnly(".template.metadata.annotations", metadata["annotations"])
}

func listOfMaps(value any) string {
	if value == nil {
		return ""
	}
	list, ok := value.([]any)
	if !ok {
		return " is " + provisioner.TypeName(value) + ", not a list"
	}
	for i, item := range list {
		if _, ok := item.(map[string]any); !ok {
			return fmt.Sprintf("[%d] is %s, not a mapping", i, provisioner.TypeName(item))
		}
	}
	return ""
}

func textsOnly(at string, value any) string {
	if value == nil {
		return ""
	}
	texts, ok := value.(map[string]any)
	if !ok {
		return at + " is " + provisioner.TypeName(value) + ", not a mapping"
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if _, ok := texts[key].(string); !ok {
			return fmt.Sprintf("%s[%q] is %s: quote the value", at, key, provisioner.TypeName(texts[key]))
		}
	}
	return ""
}
