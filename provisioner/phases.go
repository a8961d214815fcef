// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the phases that ByKind makes, in their order: what others need comes first, what can stop others from being
// made (webhooks, policies on admission) and what is served only once all else stands comes last.
const (
	PhaseNamespaces    = "namespaces"
	PhasePolicies      = "policies"      // limits that hold from the first workload on: quotas, network policies, priorities
	PhaseIdentity      = "identity"      // service accounts
	PhaseConfiguration = "configuration" // ConfigMaps and Secrets
	PhaseStorage       = "storage"       // storage classes, volumes and claims
	PhaseCRDs          = "crds"          // CustomResourceDefinitions
	PhaseRoles         = "roles"         //
	PhaseBindings      = "bindings"      //
	PhaseServices      = "services"      // before workloads, whose containers are told of them by their environment
	PhaseWorkloads     = "workloads"     // and every kind that is in no other phase
	PhaseScaling       = "scaling"       // autoscalers
	PhaseAdmission     = "admission"     // webhooks, admission policies and API services
	PhaseCustom        = "custom"        // resources whose CRD is in the same set
)

var phaseOrder = []string{
	PhaseNamespaces, PhasePolicies, PhaseIdentity, PhaseConfiguration, PhaseStorage, PhaseCRDs, PhaseRoles, PhaseBindings,
	PhaseServices, PhaseWorkloads, PhaseScaling, PhaseAdmission, PhaseCustom,
}

var phaseOf = map[schema.GroupKind]string{
	{Kind: "Namespace"}: PhaseNamespaces,

	{Kind: "LimitRange"}:                                                        PhasePolicies,
	{Kind: "ResourceQuota"}:                                                     PhasePolicies,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                         PhasePolicies,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                              PhasePolicies,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                         PhasePolicies,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                PhasePolicies,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 PhasePolicies,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: PhasePolicies,

	{Kind: "ServiceAccount"}: PhaseIdentity,

	{Kind: "ConfigMap"}: PhaseConfiguration,
	{Kind: "Secret"}:    PhaseConfiguration,

	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             PhaseStorage,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:          PhaseStorage,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: PhaseStorage,
	{Kind: "PersistentVolume"}:                               PhaseStorage,
	{Kind: "PersistentVolumeClaim"}:                          PhaseStorage,

	crdKind: PhaseCRDs,

	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        PhaseRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               PhaseRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: PhaseBindings,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        PhaseBindings,

	{Kind: "Service"}:   PhaseServices,
	{Kind: "Endpoints"}: PhaseServices,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: PhaseServices,
	{Group: "networking.k8s.io", Kind: "IngressClass"}: PhaseServices,

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: PhaseScaling,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          PhaseAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   PhaseAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     PhaseAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        PhaseAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: PhaseAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   PhaseAdmission,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             PhaseAdmission,
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// ByKind puts objects into phases by what they are: see the constants for the names and their order. Objects of one
// phase keep their order; empty phases are left out. Kinds that are neither built in nor defined by a
// CustomResourceDefinition among the objects go with the workloads.
func ByKind(objects []*unstructured.Unstructured) []Phase {
	defined := definedKinds(objects)
	sorted := map[string][]*unstructured.Unstructured{}
	for _, object := range objects {
		kind := object.GroupVersionKind().GroupKind()
		phase, known := phaseOf[kind]
		switch {
		case known:
		case defined[kind]:
			phase = PhaseCustom
		default:
			phase = PhaseWorkloads
		}
		sorted[phase] = append(sorted[phase], object)
	}
	var phases []Phase
	for _, name := range phaseOrder {
		if len(sorted[name]) > 0 {
			phases = append(phases, Phase{Name: name, Objects: sorted[name]})
		}
	}
	return phases
}

// definedKinds are the kinds that CustomResourceDefinitions among the objects define.
func definedKinds(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	defined := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != crdKind {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		if kind != "" {
			defined[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return defined
}
