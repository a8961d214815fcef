// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ofType calls use with each webhook of a type; "" means all.
func (b *bundle) ofType(kind string, use func(index int, one webhookDescription)) {
	for i, one := range b.csv.Spec.Webhooks {
		if kind == "" || one.Type == kind {
			use(i, one)
		}
	}
}

func (b *bundle) webhookTypes() {
	b.ofType("", func(i int, one webhookDescription) {
		switch one.Type {
		case validatingWebhook, mutatingWebhook, conversionWebhook:
		default:
			b.faultOfCSV("webhookdefinitions[%d].type is %q: it may be %s, %s or %s", i, one.Type, validatingWebhook, mutatingWebhook, conversionWebhook)
		}
		if one.ContainerPort < 0 || one.ContainerPort > 65535 {
			b.faultOfCSV("webhookdefinitions[%d].containerPort is %d, which is no port", i, one.ContainerPort)
		}
	})
}

// conversionModes: who converts serves all namespaces, whatever the bundle watches.
func (b *bundle) conversionModes() {
	if b.modes() == (modes{all: true}) {
		return
	}
	b.ofType(conversionWebhook, func(i int, one webhookDescription) {
		b.faultOfCSV("webhookdefinitions[%d] (%s) is a conversion webhook, which only bundles may have that support no mode but AllNamespaces, and this supports %s",
			i, one.GenerateName, b.modes())
	})
}

func (b *bundle) hasDeployment(name string) bool {
	return slices.ContainsFunc(b.csv.Spec.Install.Spec.Deployments, func(one deployment) bool { return one.Name == name })
}

func (b *bundle) webhookDeployments() {
	b.ofType("", func(i int, one webhookDescription) {
		if !b.hasDeployment(one.DeploymentName) {
			b.faultOfCSV("webhookdefinitions[%d] (%s) names the deployment %q, which is not in install.spec.deployments", i, one.GenerateName, one.DeploymentName)
		}
	})
}

func (b *bundle) webhooksUnique() {
	seen := map[[2]string]int{}
	b.ofType("", func(i int, one webhookDescription) {
		key := [2]string{one.Type, strings.TrimSuffix(one.GenerateName, "-")}
		if first, twice := seen[key]; twice {
			b.faultOfCSV("webhookdefinitions[%d]: the %s %q is in webhookdefinitions[%d] already: give them different names", i, one.Type, one.GenerateName, first)
			return
		}
		seen[key] = i
	})
}

func (b *bundle) webhookNames() {
	b.ofType("", func(i int, one webhookDescription) {
		if faults := validation.IsDNS1123Subdomain(one.GenerateName); len(faults) > 0 {
			b.faultOfCSV("webhookdefinitions[%d].generateName %q is no DNS name: "+dnsRule, i, one.GenerateName)
		}
	})
}

func (b *bundle) conversionUnique() {
	seen := map[string]int{}
	b.ofType(conversionWebhook, func(i int, one webhookDescription) {
		for _, name := range one.ConversionCRDs {
			if first, twice := seen[name]; twice {
				b.faultOfCSV("webhookdefinitions[%d] (%s) converts %q, as webhookdefinitions[%d] does: remove one", i, one.GenerateName, name, first)
				continue
			}
			seen[name] = i
		}
	})
}

func (b *bundle) conversionOwned() {
	b.ofType(conversionWebhook, func(i int, one webhookDescription) {
		for _, name := range one.ConversionCRDs {
			if !slices.ContainsFunc(b.csv.Spec.CRDs.Owned, func(owned definition) bool { return owned.Name == name }) {
				b.faultOfCSV("webhookdefinitions[%d] (%s) converts %q, which is not among customresourcedefinitions.owned", i, one.GenerateName, name)
			}
		}
	})
}

// conversionPossible: the API server calls no webhook for what keeps unknown fields.
func (b *bundle) conversionPossible() {
	b.ofType(conversionWebhook, func(_ int, one webhookDescription) {
		for _, name := range one.ConversionCRDs {
			crd := b.crd(name)
			if crd == nil {
				continue
			}
			if keeps, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "preserveUnknownFields"); keeps == true {
				b.faultOfCSV("%s converts %q, which has spec.preserveUnknownFields: set that to false", one.GenerateName, name)
			}
		}
	})
}

// webhookRules: a webhook may not be in the way of all there is, of OLM or of webhooks themselves.
func (b *bundle) webhookRules() {
	b.ofType("", func(i int, one webhookDescription) {
		if one.Type == conversionWebhook {
			return
		}
		for j, rule := range one.Rules {
			for _, group := range textsOf(rule["apiGroups"]) {
				switch group {
				case "*", "olm.operatorframework.io", "rukpak.io", "content.rukpak.io":
					b.faultOfCSV("webhookdefinitions[%d] (%s).rules[%d] is about the API group %q, which no webhook of a bundle may be: name the groups that it is for", i, one.GenerateName, j, group)
				case "admissionregistration.k8s.io":
					for _, resource := range textsOf(rule["resources"]) {
						if isAdmission(resource) {
							b.faultOfCSV("webhookdefinitions[%d] (%s).rules[%d] is about %q of %s, which no webhook of a bundle may be: remove it", i, one.GenerateName, j, resource, group)
						}
					}
				}
			}
		}
	})
}

func isAdmission(resource string) bool {
	switch strings.TrimSuffix(strings.ToLower(resource), "s") {
	case "*", "mutatingwebhookconfiguration", "validatingwebhookconfiguration":
		return true
	}
	return false
}

// textsOf gives the texts in a list; what else is in it is for the API server to refuse.
func textsOf(value any) (texts []string) {
	list, _ := value.([]any)
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (b *bundle) apiServices() {
	for i, one := range b.csv.Spec.APIServices.Owned {
		switch {
		case one.Group == "" || one.Version == "":
			b.faultOfCSV("apiservicedefinitions.owned[%d] needs group and version", i)
		case !b.hasDeployment(one.DeploymentName):
			b.faultOfCSV("apiservicedefinitions.owned[%d] (%s.%s) names the deployment %q, which is not in install.spec.deployments", i, one.Version, one.Group, one.DeploymentName)
		case len(validation.IsDNS1123Subdomain(one.Version+"."+one.Group)) > 0:
			b.faultOfCSV("apiservicedefinitions.owned[%d]: %q is no DNS name", i, one.Version+"."+one.Group)
		}
	}
}
