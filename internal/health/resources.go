// SPDX-License-Identifier: Apache-2.0

package health

import "fmt"

// provisionerAnnotation is set on a claim when a volume is being made for it.
const provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"

// claim is current when it is bound. One for which nobody makes a volume yet is too: its class may wait for the
// first consumer, which only the class says, and that consumer is where a missing volume shows.
func claim(o *object) Result {
	switch phase := o.text("status", "phase"); phase {
	case "Bound":
		return Result{Current, "bound"}
	case "Lost":
		return Result{Failed, "its volume is lost"}
	case "":
		return Result{InProgress, "not observed yet"}
	case "Pending":
		if o.text("metadata", "annotations", provisionerAnnotation) != "" {
			return Result{InProgress, "its volume is being provisioned"}
		}
		return Result{Current, "pending: waits for a volume or its first consumer"}
	default:
		return Result{Unknown, fmt.Sprintf("phase %q is not known", line(phase))}
	}
}

func volume(o *object) Result {
	switch o.text("status", "phase") {
	case "Failed":
		return Result{Failed, because("failed", o.text("status", "reason"))}
	case "", "Pending":
		return Result{InProgress, "pending"}
	}
	return Result{Status: Current}
}

func namespace(o *object) Result {
	switch o.text("status", "phase") {
	case "Active":
		return Result{Current, "active"}
	case "Terminating":
		return Result{Terminating, "is being deleted"}
	}
	return Result{InProgress, "not active yet"}
}

// service is current, unless it asks for a load balancer and has no address of one.
func service(o *object) Result {
	if o.text("spec", "type") == "LoadBalancer" && len(o.items("status", "loadBalancer", "ingress")) == 0 {
		return Result{InProgress, "no load balancer address yet"}
	}
	return Result{Status: Current}
}

// definition is current when its custom resources are served under its names.
func definition(o *object) Result {
	names, established := o.condition("NamesAccepted"), o.condition("Established")
	switch {
	case names.isFalse():
		return Result{Failed, because("names not accepted", names.reason) + ": " + names.message}
	case established.isTrue():
		return Result{Current, "established"}
	}
	return Result{InProgress, because("not established yet", established.reason)}
}

// apiService is current when the API server can reach it. Why it cannot is told with addresses that change.
func apiService(o *object) Result {
	available := o.condition("Available")
	if available.isTrue() {
		return Result{Current, "available"}
	}
	return Result{InProgress, because("not available yet", available.reason)}
}

// autoscaler is current, unless it cannot find or scale its target. Without metrics it leaves the target as it is,
// which is no fault of what was applied.
func autoscaler(o *object) Result {
	able, active := o.condition("AbleToScale"), o.condition("ScalingActive")
	switch {
	case able.isFalse() && (able.reason == "FailedGetScale" || able.reason == "FailedUpdateScale"):
		return Result{InProgress, because("cannot scale its target", able.reason)}
	case active.isFalse():
		return Result{Current, because("not scaling", active.reason)}
	}
	return Result{Status: Current}
}

// custom judges what is of no known kind by the conditions that are usual. Stalled and Reconciling say that something
// is not right; Ready, or else Available, says what is. An object without any of these is current.
func custom(o *object) Result {
	if stalled := o.condition("Stalled"); stalled.isTrue() {
		message := because("Stalled", stalled.reason)
		if stalled.message != "" {
			message += ": " + stalled.message
		}
		return Result{Failed, message}
	}
	if reconciling := o.condition("Reconciling"); reconciling.isTrue() {
		return Result{InProgress, because("Reconciling", reconciling.reason)}
	}
	for _, name := range []string{"Ready", "Available"} {
		c := o.condition(name)
		switch {
		case c.status == "":
			continue
		case c.observed >= 0 && c.observed < o.generation():
			return inProgress("generation %d is not observed yet by condition %s", o.generation(), name)
		case c.isTrue():
			return Result{Current, name}
		}
		return Result{InProgress, because(name+" is "+line(c.status), c.reason)}
	}
	return Result{Status: Current}
}
