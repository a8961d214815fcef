// SPDX-License-Identifier: Apache-2.0

package health

import "sigs.k8s.io/cli-utils/pkg/kstatus/status"

var anyTests = map[string]test{
	"a config map is current": {object: "v1 ConfigMap", want: Current},
	"a role is current":       {object: "rbac.authorization.k8s.io/v1 Role", want: Current},
	"deleted but held by finalizers": {
		object: "v1 ConfigMap\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [z.example.com/b, a.example.com/a]}",
		want:   Terminating, says: "is being deleted, finalizers: a.example.com/a, z.example.com/b",
	},
	"deleted, whatever its status says": {
		object: "apps/v1 Deployment\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {observedGeneration: 1}",
		want:   Terminating, says: "is being deleted",
	},
	"a webhook configuration is current": {object: "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", want: Current},
}

var deploymentTests = map[string]test{
	"just created": {object: "apps/v1 Deployment\nspec: {replicas: 2}", want: InProgress, says: "generation 2 is not observed yet"},
	"of an older generation": {
		object: "apps/v1 Deployment\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}",
		want:   InProgress, says: "generation 2 is not observed yet",
	},
	"some updated": {
		object: "apps/v1 Deployment\nspec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3}",
		want:   InProgress, says: "1 of 3 replicas updated",
	},
	"old ones left": {
		object: "apps/v1 Deployment\nspec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 4}",
		want:   InProgress, says: "1 old replicas not gone yet",
	},
	"some available": {
		object: "apps/v1 Deployment\nspec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 2}",
		want:   InProgress, says: "2 of 3 replicas available",
	},
	"all available": {
		object: `apps/v1 Deployment
spec: {replicas: 3}
status:
  observedGeneration: 2
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 3
  availableReplicas: 3
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`,
		want: Current, says: "3 of 3 replicas available",
	},
	"scaled to zero": {
		object: "apps/v1 Deployment\nspec: {replicas: 0}\nstatus: {observedGeneration: 2}",
		want:   Current, says: "0 of 0 replicas available",
		kstatus: status.InProgressStatus, why: "without replicas there is nothing to wait for, conditions or not",
	},
	"replicas not given means one": {
		object: "apps/v1 Deployment\nspec: {}\nstatus: {observedGeneration: 2}", want: InProgress, says: "0 of 1 replicas updated",
	},
	"deadline exceeded": {
		object: `apps/v1 Deployment
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`,
		want: Failed, says: "progress deadline exceeded: 0 of 1 replicas available",
	},
	"deadline exceeded once, but available now": {
		object: `apps/v1 Deployment
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: 1
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]`,
		want: Current, says: "1 of 1 replicas available",
		kstatus: status.FailedStatus, why: "the condition is of the past: all that was asked for is there",
	},
	"over quota": {
		object: `apps/v1 Deployment
spec: {replicas: 1}
status: {observedGeneration: 2, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "x-7d-abc" is forbidden'}]}`,
		want: InProgress, says: "0 of 1 replicas updated, Pods cannot be created (FailedCreate)",
	},
	"paused in the middle": {
		object: "apps/v1 Deployment\nspec: {replicas: 2, paused: true}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2}",
		want:   InProgress, says: "1 of 2 replicas updated, rollout is paused",
	},
	"malformed": {
		object: "apps/v1 Deployment\nspec: {replicas: many}\nstatus: {observedGeneration: 2}", want: Unknown, says: "spec.replicas is not a number",
		kstatus: status.InProgressStatus, why: "a number that cannot be read is not the default",
	},
}

var statefulSetTests = map[string]test{
	"just created": {object: "apps/v1 StatefulSet\nspec: {replicas: 1}", want: InProgress, says: "generation 2 is not observed yet"},
	"updating": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 1, currentReplicas: 2, currentRevision: a, updateRevision: b}",
		want:   InProgress, says: "1 of 3 replicas updated",
	},
	"updated, not available": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 3, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 3}",
		want:   InProgress, says: "2 of 3 replicas available",
	},
	"scaling down": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 3}",
		want:   InProgress, says: "2 surplus replicas not gone yet",
	},
	"current": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2, currentReplicas: 2, currentRevision: b, updateRevision: b}",
		want:   Current, says: "2 of 2 replicas available",
	},
	"updated up to its partition": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}\nstatus: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 1, currentReplicas: 2, currentRevision: a, updateRevision: b}",
		want:   Current, says: "3 of 3 replicas available",
	},
	"on delete, not available": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 1, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, replicas: 1}",
		want:   InProgress, says: "0 of 1 replicas available",
		kstatus: status.CurrentStatus, why: "OnDelete says when Pods are replaced, not that they need not run",
	},
	"on delete, available but old": {
		object: "apps/v1 StatefulSet\nspec: {replicas: 1, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, replicas: 1, readyReplicas: 1, availableReplicas: 1}",
		want:   Current, says: "1 of 1 replicas available",
	},
}

var daemonSetTests = map[string]test{
	"just created": {object: "apps/v1 DaemonSet", want: InProgress, says: "generation 2 is not observed yet"},
	"no nodes":     {object: "apps/v1 DaemonSet\nstatus: {observedGeneration: 2, desiredNumberScheduled: 0}", want: Current, says: "available on 0 of 0 nodes"},
	"updating": {
		object: "apps/v1 DaemonSet\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3, numberReady: 3}",
		want:   InProgress, says: "updated on 1 of 3 nodes",
	},
	"not available everywhere": {
		object: "apps/v1 DaemonSet\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2, numberReady: 2}",
		want:   InProgress, says: "available on 2 of 3 nodes",
	},
	"on delete, old": {
		object: "apps/v1 DaemonSet\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, numberAvailable: 3, numberReady: 3}",
		want:   Current, says: "available on 3 of 3 nodes",
		kstatus: status.InProgressStatus, why: "with OnDelete its owner decides when Pods are replaced",
	},
}

var replicaSetTests = map[string]test{
	"just created": {object: "apps/v1 ReplicaSet\nspec: {replicas: 1}", want: InProgress, says: "generation 2 is not observed yet"},
	"some available": {
		object: "apps/v1 ReplicaSet\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1}",
		want:   InProgress, says: "1 of 2 replicas available",
	},
	"over quota": {
		object: "apps/v1 ReplicaSet\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}",
		want:   InProgress, says: "0 of 2 replicas available, Pods cannot be created (FailedCreate)",
	},
	"current": {
		object: "apps/v1 ReplicaSet\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}",
		want:   Current, says: "2 of 2 replicas available",
	},
	"a replication controller with surplus": {
		object: "v1 ReplicationController\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 2, availableReplicas: 2}",
		want:   InProgress, says: "1 surplus replicas not gone yet",
		kstatus: status.CurrentStatus, why: "kstatus does not know the kind",
	},
}

var jobTests = map[string]test{
	"just created": {object: "batch/v1 Job", want: InProgress, says: "not started yet"},
	"running": {
		object: "batch/v1 Job\nspec: {completions: 3}\nstatus: {startTime: '2026-01-01T00:00:00Z', active: 2, succeeded: 1}",
		want:   InProgress, says: "1 of 3 completions",
		kstatus: status.CurrentStatus, why: "what waits for a Job waits for its end",
	},
	"complete": {
		object: "batch/v1 Job\nstatus: {startTime: '2026-01-01T00:00:00Z', succeeded: 1, conditions: [{type: Complete, status: 'True'}]}", want: Current, says: "complete",
	},
	"failed": {
		object: "batch/v1 Job\nstatus: {startTime: '2026-01-01T00:00:00Z', failed: 7, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}",
		want:   Failed, says: "failed (BackoffLimitExceeded)",
	},
	"suspended": {
		object: "batch/v1 Job\nspec: {suspend: true}", want: Current, says: "suspended",
		kstatus: status.InProgressStatus, why: "it was asked not to run",
	},
	"a cron job is current": {object: "batch/v1 CronJob\nspec: {suspend: true}", want: Current},
}

var podTests = map[string]test{
	"just created": {object: "v1 Pod", want: InProgress, says: "not ready yet"},
	"ready":        {object: "v1 Pod\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", want: Current, says: "ready"},
	"complete":     {object: "v1 Pod\nstatus: {phase: Succeeded}", want: Current, says: "complete"},
	"failed": {
		object: "v1 Pod\nstatus: {phase: Failed, reason: Evicted}", want: Failed, says: "failed (Evicted)",
		kstatus: status.CurrentStatus, why: "to end with an error is not what a Pod is for",
	},
	"unschedulable": {
		object: "v1 Pod\nmetadata: {creationTimestamp: '2020-01-01T00:00:00Z'}\nstatus: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}",
		want:   InProgress, says: "not scheduled yet (Unschedulable)",
		kstatus: status.FailedStatus, why: "a node may come, and no clock decides here",
	},
	"crash loop": {
		object: "v1 Pod\nstatus: {phase: Running, containerStatuses: [{name: b, state: {waiting: {reason: CrashLoopBackOff}}}, {name: a, state: {waiting: {reason: ErrImagePull}}}]}",
		want:   InProgress, says: "container a (ImagePullBackOff), container b (CrashLoopBackOff)",
		kstatus: status.FailedStatus, why: "what it waits for may come; between two attempts it would not be failed either",
	},
	"an image name that cannot be": {
		object: "v1 Pod\nstatus: {phase: Pending, initContainerStatuses: [{name: a, state: {waiting: {reason: InvalidImageName}}}]}",
		want:   Failed, says: "container a (InvalidImageName)",
		kstatus: status.InProgressStatus, why: "it stays invalid",
	},
	"unknown phase": {object: "v1 Pod\nstatus: {phase: Odd}", want: Unknown, says: `phase "Odd" is not known`},
}

var storageTests = map[string]test{
	"a bound claim is current": {object: "v1 PersistentVolumeClaim\nstatus: {phase: Bound}", want: Current, says: "bound"},
	"a claim that waits for its first consumer is current": {
		object: "v1 PersistentVolumeClaim\nstatus: {phase: Pending}", want: Current, says: "pending: waits for a volume or its first consumer",
		kstatus: status.InProgressStatus, why: "with WaitForFirstConsumer it would be in progress for ever",
	},
	"a claim whose volume is being made": {
		object: "v1 PersistentVolumeClaim\nmetadata: {annotations: {volume.kubernetes.io/storage-provisioner: csi.example.com}}\nstatus: {phase: Pending}",
		want:   InProgress, says: "its volume is being provisioned",
	},
	"a lost claim failed": {
		object: "v1 PersistentVolumeClaim\nstatus: {phase: Lost}", want: Failed, says: "its volume is lost",
		kstatus: status.InProgressStatus, why: "it does not come back",
	},
	"a failed volume": {
		object: "v1 PersistentVolume\nstatus: {phase: Failed}", want: Failed, says: "failed",
		kstatus: status.CurrentStatus, why: "kstatus does not know the kind",
	},
}

var apiTests = map[string]test{
	"a definition that is just created": {object: "apiextensions.k8s.io/v1 CustomResourceDefinition", want: InProgress, says: "not established yet"},
	"a definition that is being installed": {
		object: "apiextensions.k8s.io/v1 CustomResourceDefinition\nstatus: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'False', reason: Installing}]}",
		want:   InProgress, says: "not established yet (Installing)",
	},
	"an established definition": {
		object: "apiextensions.k8s.io/v1 CustomResourceDefinition\nstatus: {conditions: [{type: Established, status: 'True'}, {type: NamesAccepted, status: 'True'}]}",
		want:   Current, says: "established",
	},
	"a definition whose names are taken": {
		object: "apiextensions.k8s.io/v1 CustomResourceDefinition\nstatus: {conditions: [{type: Established, status: 'True'}, {type: NamesAccepted, status: 'False', reason: PluralConflict, message: '\"things\" is in use'}]}",
		want:   Failed, says: `names not accepted (PluralConflict): "things" is in use`,
		kstatus: status.CurrentStatus, why: "kstatus takes the first condition that it finds",
	},
	"an API service that is reached": {object: "apiregistration.k8s.io/v1 APIService\nstatus: {conditions: [{type: Available, status: 'True'}]}", want: Current, says: "available"},
	"an API service that is not reached": {
		object: "apiregistration.k8s.io/v1 APIService\nstatus: {conditions: [{type: Available, status: 'False', reason: FailedDiscoveryCheck, message: dial tcp 10.0.0.1}]}",
		want:   InProgress, says: "not available yet (FailedDiscoveryCheck)",
		kstatus: status.CurrentStatus, why: "kstatus does not know the kind",
	},
	"an active namespace": {object: "v1 Namespace\nstatus: {phase: Active}", want: Current, says: "active"},
	"a namespace that is going": {
		object: "v1 Namespace\nstatus: {phase: Terminating}", want: Terminating, says: "is being deleted",
		kstatus: status.CurrentStatus, why: "kstatus does not know the kind",
	},
}

var networkTests = map[string]test{
	"a service":                  {object: "v1 Service\nspec: {type: ClusterIP, clusterIP: 10.0.0.1}", want: Current},
	"a headless service":         {object: "v1 Service\nspec: {clusterIP: None}", want: Current},
	"an external name":           {object: "v1 Service\nspec: {type: ExternalName, externalName: example.com}", want: Current},
	"a balancer with an address": {object: "v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", want: Current},
	"a balancer without address": {
		object: "v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {}}", want: InProgress, says: "no load balancer address yet",
		kstatus: status.CurrentStatus, why: "kstatus asks for the cluster IP only, which every Service has",
	},
	"an ingress is current": {object: "networking.k8s.io/v1 Ingress\nstatus: {loadBalancer: {}}", want: Current},
}

var scalingTests = map[string]test{
	"a disruption budget is current": {object: "policy/v1 PodDisruptionBudget\nstatus: {conditions: [{type: DisruptionAllowed, status: 'False'}]}", want: Current},
	"an autoscaler without metrics is current": {
		object: "autoscaling/v2 HorizontalPodAutoscaler\nstatus: {conditions: [{type: AbleToScale, status: 'True'}, {type: ScalingActive, status: 'False', reason: FailedGetResourceMetric}]}",
		want:   Current, says: "not scaling (FailedGetResourceMetric)",
	},
	"an autoscaler without target": {
		object: "autoscaling/v2 HorizontalPodAutoscaler\nstatus: {conditions: [{type: AbleToScale, status: 'False', reason: FailedGetScale}]}",
		want:   InProgress, says: "cannot scale its target (FailedGetScale)",
		kstatus: status.CurrentStatus, why: "kstatus does not know the kind",
	},
	"an autoscaler": {object: "autoscaling/v2 HorizontalPodAutoscaler", want: Current},
}

var customTests = map[string]test{
	"no status": {object: "example.com/v1 Thing", want: Current},
	"status of a kind of its own": {
		object: "example.com/v1 Thing\nstatus: fine", want: Current,
		kstatus: status.UnknownStatus, why: "a custom resource may have any status",
	},
	"ready": {object: "example.com/v1 Thing\nstatus: {conditions: [{type: Ready, status: 'True'}]}", want: Current, says: "Ready"},
	"not ready": {
		object: "example.com/v1 Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: Waiting, message: since 12:01}]}",
		want:   InProgress, says: "Ready is False (Waiting)",
	},
	"ready unknown": {object: "example.com/v1 Thing\nstatus: {conditions: [{type: Ready, status: Unknown}]}", want: InProgress, says: "Ready is Unknown"},
	"not available": {
		object: "example.com/v1 Thing\nstatus: {conditions: [{type: Available, status: 'False', reason: NoPods}]}", want: InProgress, says: "Available is False (NoPods)",
		kstatus: status.CurrentStatus, why: "kstatus looks at Ready only",
	},
	"ready goes before available": {
		object: "example.com/v1 Thing\nstatus: {conditions: [{type: Available, status: 'False'}, {type: Ready, status: 'True'}]}", want: Current, says: "Ready",
	},
	"ready, of an older generation": {
		object: "example.com/v1 Thing\nstatus: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}", want: InProgress, says: "generation 2 is not observed yet",
	},
	"ready, a condition of an older generation": {
		object: "example.com/v1 Thing\nstatus: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}",
		want:   InProgress, says: "generation 2 is not observed yet by condition Ready",
		kstatus: status.CurrentStatus, why: "kstatus does not look at the generation of a condition",
	},
	"stalled": {
		object: "example.com/v1 Thing\nstatus: {conditions: [{type: Stalled, status: 'True', reason: BadSpec, message: no such size}, {type: Ready, status: 'True'}]}",
		want:   Failed, says: "Stalled (BadSpec): no such size",
	},
	"reconciling": {
		object: "example.com/v1 Thing\nstatus: {conditions: [{type: Reconciling, status: 'True', reason: Working}, {type: Ready, status: 'True'}]}",
		want:   InProgress, says: "Reconciling (Working)",
	},
	"conditions of another form": {
		object: "example.com/v1 Thing\nstatus: {conditions: {Ready: 'no'}}", want: Current,
		kstatus: status.UnknownStatus, why: "a custom resource may have any status",
	},
	"observed generation of another form": {object: "example.com/v1 Thing\nstatus: {observedGeneration: '1'}", want: Current,
		kstatus: status.UnknownStatus, why: "a custom resource may have any status",
	},
}
