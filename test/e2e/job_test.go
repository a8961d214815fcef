// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

const passingJob = `apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  ttlSecondsAfterFinished: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: once, image: "registry.k8s.io/pause:3.10"}]
`

func TestAJobThatTheClusterDeletesWhenDoneIsNotRunAgain(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"job.yaml": passingJob, "a.yaml": configMap("one", "1")}))
	a.ready("app")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "once"}}
	a.gone(job)
	time.Sleep(3 * time.Second)
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
		t.Errorf("the job was made again: %v", err)
	}
	a.ready("app")
}
