// SPDX-License-Identifier: Apache-2.0

// Package health says of one object whether it is as it should be. It belongs to the last step of the flow: source ->
// unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch.
//
// What an instance says of its objects in CEL is for package check below this one.
//
// It is pure: it reads an object, with its status, and nothing else, no clock either. The rules are those of kstatus where
// these are right; where they are not (a failed Pod is not current, a Job is not done while it runs, a load balancer
// without an address does not balance) or silent, they are our own. A test compares both and lists the differences.
//
// Only what cannot get better without a change is Failed. What may still come is InProgress, for as long as the
// caller's deadline allows.
package health

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is how an object is.
type Status string

const (
	// Current objects are as they should be.
	Current Status = "Current"
	// InProgress objects are on their way, or wait for something.
	InProgress Status = "InProgress"
	// Failed objects will not become current by themselves.
	Failed Status = "Failed"
	// Terminating objects are being deleted.
	Terminating Status = "Terminating"
	// NotFound objects do not exist.
	NotFound Status = "NotFound"
	// Unknown objects cannot be judged: their status is not of the form that their kind has.
	Unknown Status = "Unknown"
)

// Result is the health of one object.
type Result struct {
	Status Status
	// Message says why, in a few words on one line; it is empty if there is nothing to say. It changes only if what
	// it says changes: there are no times in it, and lists are sorted.
	Message string
}

// Of returns the health of an object that was read with its status. A nil object is one that does not exist. The
// object is not changed.
func Of(obj *unstructured.Unstructured) Result {
	if result := absentOrGoing(obj); result != nil {
		return *result
	}
	gk := obj.GroupVersionKind().GroupKind()
	if existence[gk] {
		return Result{Status: Current}
	}
	o := &object{content: obj.Object}
	rule, known := rules[gk]
	if !known {
		rule = custom
	}
	result := o.stale()
	if result == nil {
		judged := rule(o)
		result = &judged
	}
	if o.malformed != "" {
		return Result{Unknown, o.malformed}
	}
	return *result
}

// Unsettled returns the health of an object of which the rest need not be looked at, nil for all others: it does not exist,
// is being deleted, or its status speaks of another generation.
func Unsettled(obj *unstructured.Unstructured) *Result {
	if result := absentOrGoing(obj); result != nil {
		return result
	}
	return (&object{content: obj.Object}).stale()
}

func absentOrGoing(obj *unstructured.Unstructured) *Result {
	switch {
	case obj == nil:
		return &Result{NotFound, "does not exist"}
	case obj.GetDeletionTimestamp() != nil:
		return new(terminating(obj))
	}
	return nil
}

// NeedsStatus tells whether the health of a kind depends on more than the existence of the object. Where it is
// false the caller need not read the object: knowing that it is there, and not being deleted, is enough.
func NeedsStatus(gk schema.GroupKind) bool { return !existence[gk] }

func terminating(obj *unstructured.Unstructured) Result {
	finalizers := slices.Clone(obj.GetFinalizers())
	slices.Sort(finalizers)
	if len(finalizers) == 0 {
		return Result{Terminating, "is being deleted"}
	}
	return Result{Terminating, "is being deleted, finalizers: " + strings.Join(finalizers, ", ")}
}

// rule judges the objects of one kind, or of several alike.
type rule func(*object) Result

// rules by kind. Kinds that are neither here nor in existence are taken for custom resources.
var rules = map[schema.GroupKind]rule{
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:                               replicas,
	{Kind: "ReplicationController"}:                                   replicas,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Kind: "Pod"}:                                                     pod,
	{Kind: "PersistentVolumeClaim"}:                                   claim,
	{Kind: "PersistentVolume"}:                                        volume,
	{Kind: "Namespace"}:                                               namespace,
	{Kind: "Service"}:                                                 service,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           autoscaler,
}

// existence has the kinds whose objects are current when they are there. Some have a status, but one that says
// nothing about the object itself: an Ingress whose controller writes no address serves all the same, and a
// CronJob whose last Job failed is as it was asked for.
var existence = kinds(map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "PodTemplate", "ResourceQuota", "Secret", "ServiceAccount",
	},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apps":                         {"ControllerRevision"},
	"batch":                        {"CronJob"},
	"coordination.k8s.io":          {"Lease"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"policy":                       {"PodDisruptionBudget"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io": {
		"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttributesClass",
	},
})

func kinds(byGroup map[string][]string) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for group, names := range byGroup {
		for _, name := range names {
			out[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return out
}

// inProgress makes a result from a format.
func inProgress(format string, args ...any) Result {
	return Result{InProgress, fmt.Sprintf(format, args...)}
}

// because joins what is the case with a reason in CamelCase, if there is one.
func because(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + " (" + reason + ")"
}
