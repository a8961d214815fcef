// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
)

// deployment is current when all its replicas are of the newest template and available, and no old ones are left.
// A paused one need not be of the newest template.
func deployment(o *object) Result {
	if r := o.unobserved(); r != nil {
		return *r
	}
	desired := o.number(1, "spec", "replicas")
	updated := o.number(0, "status", "updatedReplicas")
	total := o.number(0, "status", "replicas")
	available := o.number(0, "status", "availableReplicas")
	var r Result
	switch {
	case updated < desired:
		r = inProgress("%d of %d replicas updated", updated, desired)
	case total > updated:
		r = inProgress("%d old replicas not gone yet", total-updated)
	case available < desired:
		r = inProgress("%d of %d replicas available", available, desired)
	default:
		return Result{Current, fmt.Sprintf("%d of %d replicas available", available, desired)}
	}
	progressing := o.condition("Progressing")
	failure := o.condition("ReplicaFailure")
	switch {
	case o.flag("spec", "paused"):
		r.Message += ", rollout is paused"
	case progressing.reason == "ProgressDeadlineExceeded":
		return Result{Failed, "progress deadline exceeded: " + r.Message}
	case failure.isTrue(): // its message names a Pod that is another one each time
		r.Message += ", " + because("Pods cannot be created", failure.reason)
	}
	return r
}

// statefulSet is current when all its replicas that are to be updated are, and all are available. With strategy
// OnDelete its owner decides when they are.
func statefulSet(o *object) Result {
	if r := o.unobserved(); r != nil {
		return *r
	}
	desired := o.number(1, "spec", "replicas")
	total := o.number(0, "status", "replicas")
	available := o.number(0, "status", "availableReplicas")
	updated := o.number(0, "status", "updatedReplicas")
	toUpdate := max(desired-o.number(0, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)
	if o.text("spec", "updateStrategy", "type") == "OnDelete" {
		toUpdate = 0
	}
	switch {
	case updated < toUpdate:
		return inProgress("%d of %d replicas updated", updated, toUpdate)
	case total > desired:
		return inProgress("%d surplus replicas not gone yet", total-desired)
	case available < desired:
		return inProgress("%d of %d replicas available", available, desired)
	}
	return Result{Current, fmt.Sprintf("%d of %d replicas available", available, desired)}
}

// daemonSet is current when there is an available Pod of the newest template on each node that is to have one,
// which may be none.
func daemonSet(o *object) Result {
	if r := o.unobserved(); r != nil {
		return *r
	}
	desired := o.number(0, "status", "desiredNumberScheduled")
	updated := o.number(0, "status", "updatedNumberScheduled")
	available := o.number(0, "status", "numberAvailable")
	switch {
	case updated < desired && o.text("spec", "updateStrategy", "type") != "OnDelete":
		return inProgress("updated on %d of %d nodes", updated, desired)
	case available < desired:
		return inProgress("available on %d of %d nodes", available, desired)
	}
	return Result{Current, fmt.Sprintf("available on %d of %d nodes", available, desired)}
}

// replicas judges what has replicas and no rollout.
func replicas(o *object) Result {
	if r := o.unobserved(); r != nil {
		return *r
	}
	desired := o.number(1, "spec", "replicas")
	total := o.number(0, "status", "replicas")
	available := o.number(0, "status", "availableReplicas")
	failure := o.condition("ReplicaFailure")
	switch {
	case total > desired:
		return inProgress("%d surplus replicas not gone yet", total-desired)
	case available < desired && failure.isTrue():
		return inProgress("%d of %d replicas available, %s", available, desired, because("Pods cannot be created", failure.reason))
	case available < desired:
		return inProgress("%d of %d replicas available", available, desired)
	}
	return Result{Current, fmt.Sprintf("%d of %d replicas available", available, desired)}
}

// job is current when it is complete. A suspended one does what it was asked to.
func job(o *object) Result {
	failed := o.condition("Failed")
	switch {
	case o.condition("Complete").isTrue():
		return Result{Current, "complete"}
	case failed.isTrue():
		return Result{Failed, because("failed", failed.reason)}
	case o.flag("spec", "suspend"):
		return Result{Current, "suspended"}
	case o.text("status", "startTime") == "":
		return Result{InProgress, "not started yet"}
	}
	if completions := o.number(0, "spec", "completions"); completions > 0 {
		return inProgress("%d of %d completions", o.number(0, "status", "succeeded"), completions)
	}
	return Result{InProgress, "not complete yet"}
}

// pod is current when it is ready, or done. What its containers wait for comes and goes, so it fails only for good.
func pod(o *object) Result {
	switch phase := o.text("status", "phase"); phase {
	case "Succeeded":
		return Result{Current, "complete"}
	case "Failed":
		return Result{Failed, because("failed", o.text("status", "reason"))}
	case "Running", "Pending", "":
	default:
		return Result{Unknown, fmt.Sprintf("phase %q is not known", line(phase))}
	}
	if o.condition("Ready").isTrue() {
		return Result{Current, "ready"}
	}
	waiting, hopeless := o.waitingContainers()
	scheduled := o.condition("PodScheduled")
	switch {
	case hopeless:
		return Result{Failed, waiting}
	case waiting != "":
		return Result{InProgress, waiting}
	case scheduled.isFalse():
		return Result{InProgress, because("not scheduled yet", scheduled.reason)}
	}
	return Result{InProgress, "not ready yet"}
}

// waitingContainers lists the containers that wait because of an error, sorted, and tells whether one of them waits
// in vain.
func (o *object) waitingContainers() (message string, hopeless bool) {
	var all []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, status := range o.items("status", list) {
			c := &object{content: status}
			reason := c.text("state", "waiting", "reason")
			switch reason {
			case "", "ContainerCreating", "PodInitializing":
				continue
			case "ErrImagePull": // takes turns with the other
				reason = "ImagePullBackOff"
			case "InvalidImageName":
				hopeless = true
			}
			all = append(all, because("container "+c.text("name"), reason))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", "), hopeless
}
