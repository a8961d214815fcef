// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestWaitKnowsWhenItIsDoneAndWhenItIsHopeless(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	ready := func(reason string) func(*v1alpha1.BundleInstance) {
		return func(i *v1alpha1.BundleInstance) {
			status := no
			if reason == "ActiveAndHealthy" {
				status = yes
			}
			i.Status.Conditions[0] = condition("Ready", status, reason, "m")
		}
	}
	settled := func(i *v1alpha1.BundleInstance) {
		ready("ActiveAndHealthy")(i)
		i.Status.Active, i.Status.Pending = i.Status.Pending, nil
	}
	waiting := revision(2)
	active := revision(2, with(condition("Approved", yes, "Approved", ""), condition("Active", yes, "Activated", "")))
	denied := revision(2, with(condition("Denied", yes, "Denied", "by bob: no")))
	failed := revision(2, with(condition("Approved", yes, "Approved", ""), condition("Failed", yes, "DeadlineExceeded", "10m passed")))
	activating := revision(2, with(condition("Approved", yes, "Approved", ""), condition("Active", no, "Activating", "")),
		func(r *v1alpha1.InstanceRevision) { r.Status.Objects = &v1alpha1.ObjectCounts{Total: 3, Healthy: 1} })

	tests := map[string]struct {
		goal     goal
		instance *v1alpha1.BundleInstance
		revision *v1alpha1.InstanceRevision
		want     string
		code     int // ends at once
		wait     int // code if the time is up
	}{
		"ready, but a revision waits":       {goalReady, instance(), waiting, "web-2: WaitingForApproval: somebody must approve", 0, ExitWaiting},
		"planned is reached while it waits": {goalPlanned, instance(), waiting, "web-2 is planned", 0, 0},
		"the old one is healthy meanwhile":  {goalHealthy, instance(), waiting, "web is healthy", 0, 0},
		"approved is not reached":           {goalApproved, instance(), waiting, "web-2: WaitingForApproval: somebody must approve", 0, ExitWaiting},
		"ready":                             {goalReady, instance(settled), active, "web-2 is ready", 0, 0},
		"active":                            {goalActive, instance(settled), active, "web-2 is active", 0, 0},
		"denied":                            {goalReady, instance(), denied, "web-2: Denied: by bob: no", ExitDenied, ExitTimeout},
		"failed":                            {goalReady, instance(), failed, "web-2: Failed: 10m passed", ExitFailed, ExitTimeout},
		"activating":                        {goalReady, instance(), activating, "web-2: Activating (1 of 3 objects healthy)", 0, ExitTimeout},
		"the change was not seen yet": {
			goalReady, instance(settled, func(i *v1alpha1.BundleInstance) { i.Generation = 4 }), active,
			"web: the manager has not looked at the change yet", 0, ExitTimeout,
		},
		"the old one is active while the new content is fetched": {
			goalActive, instance(settled, ready("BundleNotReady")), active, "web: BundleNotReady: m", 0, ExitTimeout,
		},
		"the content is refused":                 {goalReady, instance(ready("InvalidContent")), active, "web: InvalidContent: m", ExitFailed, ExitTimeout},
		"a part of the configuration is missing": {goalReady, instance(ready("ConfigNotFound")), active, "web: ConfigNotFound: m", 0, ExitTimeout},
		"what was asked for was rolled back":     {goalReady, instance(settled, ready("RolledBack")), active, "web: RolledBack: m", ExitFailed, ExitTimeout},
		"what is active in its place is not it":  {goalActive, instance(settled, ready("RolledBack")), active, "web: RolledBack: m", ExitFailed, ExitTimeout},
		"suspended": {
			goalReady, instance(func(i *v1alpha1.BundleInstance) { i.Spec.Suspend = true }), waiting,
			"web: is suspended: nothing happens until it is resumed", ExitFailed, 0,
		},
		"nothing yet": {goalReady, instance(func(i *v1alpha1.BundleInstance) { i.Status = v1alpha1.BundleInstanceStatus{} }), nil,
			"web: Unseen: no manager has looked at it yet; is RukPak's manager running?", 0, ExitTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := judge(test.goal, test.instance, test.revision)
			if got.String() != test.want || got.code != test.code || !got.done && got.wait != test.wait && test.wait != 0 {
				t.Errorf("%q, ends with %d, time up %d; not %q, %d, %d", got, got.code, got.wait, test.want, test.code, test.wait)
			}
		})
	}
}
