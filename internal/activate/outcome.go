// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
)

// endOf says how a task has ended, or that it runs and how far it is. Jobs and Pods run; all else has ended well by being
// there.
func endOf(live *unstructured.Unstructured) (state TaskState, message string) {
	switch live.GroupVersionKind().GroupKind() {
	case jobKind:
		return endOfJob(live)
	case podKind:
		return endOfPod(live)
	default:
		return TaskSucceeded, ""
	}
}

func endOfJob(live *unstructured.Unstructured) (TaskState, string) {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, _ := entry.(map[string]any)
		if fields["status"] != "True" {
			continue
		}
		switch fields["type"] {
		case "Complete":
			return TaskSucceeded, ""
		case "Failed":
			return TaskFailed, because(fields["reason"], fields["message"])
		}
	}
	if suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend"); suspended {
		return TaskRunning, "it is suspended"
	}
	if failures, _, _ := unstructured.NestedInt64(live.Object, "status", "failed"); failures > 0 {
		return TaskRunning, fmt.Sprintf("it runs; %d of its Pods failed so far", failures)
	}
	return TaskRunning, "it runs"
}

func endOfPod(live *unstructured.Unstructured) (TaskState, string) {
	switch text(live, "status", "phase") {
	case string(corev1.PodSucceeded):
		return TaskSucceeded, ""
	case string(corev1.PodFailed):
		return TaskFailed, because(text(live, "status", "reason"), text(live, "status", "message"))
	default:
		return TaskRunning, "it runs"
	}
}

// because puts a reason and a message together, of which either may be absent.
func because(reason, message any) string {
	var words []string
	for _, part := range []any{reason, message} {
		if said, _ := part.(string); said != "" {
			words = append(words, said)
		}
	}
	if len(words) == 0 {
		return "it says not why"
	}
	return strings.Join(words, ": ")
}

// lastWords is what the container that failed last said, of a Pod or of one of a Job's Pods; "" if that cannot be told.
func (s *session) lastWords(ctx context.Context, live *unstructured.Unstructured) string {
	var pods []unstructured.Unstructured
	switch live.GroupVersionKind().GroupKind() {
	case podKind:
		pods = []unstructured.Unstructured{*live}
	case jobKind:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
		s.reads.Add(1)
		err := s.client.List(ctx, list, client.InNamespace(live.GetNamespace()), client.Limit(inUseLimit),
			client.MatchingLabels{"batch.kubernetes.io/controller-uid": string(live.GetUID())})
		if err != nil {
			return "" // the account need not read Pods
		}
		pods = list.Items
	}
	var last time.Time
	var words string
	for i := range pods {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pods[i].Object, pod); err != nil {
			continue
		}
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if end := status.State.Terminated; end != nil && end.ExitCode != 0 && !end.FinishedAt.Time.Before(last) {
				last, words = end.FinishedAt.Time, wordsOf(pod.Name, status.Name, end)
			}
		}
	}
	return words
}

const maxWords = 400 // of a container, in bytes

func wordsOf(pod, container string, end *corev1.ContainerStateTerminated) string {
	words := fmt.Sprintf("container %s of Pod %s exited with code %d", container, pod, end.ExitCode)
	if said := oneLine(end.Message); said != "" {
		if len(said) > maxWords {
			said = "..." + strings.ToValidUTF8(said[len(said)-maxWords:], "")
		}
		words += ": " + said
	}
	return words
}
