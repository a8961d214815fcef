// SPDX-License-Identifier: Apache-2.0

package provisioner

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Phase is a set of objects which do not depend on one another, so that all of them can be activated at once.
type Phase struct {
	// Name is for people: short, lower case, unique within a result; at most 63 bytes.
	Name string
	// On makes the objects tasks, which are run, and not state, which is kept: at each of these moments every object is
	// made anew, waited for until it has finished (Jobs and Pods run to their end, others are there at once), and not
	// looked at afterwards: no drift is corrected and nothing is pruned. What fails a task fails the activation. The
	// phase runs at its place among the phases that are activated. A phase without moments holds state.
	On []Moment `json:",omitempty"`
	// Objects are plain values of JSON, as encoding/json gives them to unstructured: int64 or float64 for numbers.
	Objects []*unstructured.Unstructured
}

// Moment is when tasks run.
type Moment string

// The moments.
const (
	OnInstall        Moment = "Install"        // a revision is activated, and none has been before
	OnUpgrade        Moment = "Upgrade"        // a revision is activated after another one
	OnRollback       Moment = "Rollback"       // an earlier revision is activated again
	OnTest           Moment = "Test"           // somebody says "rukpak test"
	OnTeardown       Moment = "Teardown"       // the instance is deleted; before its objects are removed
	OnTeardownFinish Moment = "TeardownFinish" // the instance is deleted; after its objects are removed
)

// Annotations on objects of content that tell the activation what to do with them.
const (
	// AnnotationServingCertificate on a webhook configuration, an APIService or a CustomResourceDefinition with a conversion
	// webhook asks RukPak for the serving certificate of the Services that the object calls. Its value is the name of the
	// Secret to be made, in the namespace of these Services, with the keys tls.crt, tls.key and ca.crt; where several objects
	// name one Secret, its certificate is for the Services of all of them. RukPak fills in each caBundle that the content leaves
	// empty, renews the certificate in time, and removes the Secret with the instance. All is written as the instance's service
	// account.
	AnnotationServingCertificate = "rukpak.io/serving-certificate"

	// AnnotationPrune with PruneDisabled keeps an object in the cluster when it is no longer part of the content and when
	// the instance is deleted.
	AnnotationPrune = "rukpak.io/prune"
	PruneDisabled   = "disabled"

	// AnnotationDeleteTask says when the object of a task is deleted: a list, separated by commas, of DeleteBeforeRun,
	// DeleteOnSuccess and DeleteOnFailure. Not set means DeleteBeforeRun.
	AnnotationDeleteTask = "rukpak.io/delete-task"
	DeleteBeforeRun      = "BeforeRun" // one of an earlier run, before the task runs again
	DeleteOnSuccess      = "Succeeded" // once the task has succeeded, also if a later one fails
	DeleteOnFailure      = "Failed"    // once it has failed
)
