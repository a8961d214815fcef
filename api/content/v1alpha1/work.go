// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What the content API has for provisioners that run outside of the manager. All stands below the ID of a provisioner,
// as "provisioners/jsonnet.example.com/work". Whose ID may be served by whom is RBAC on that name.
const (
	ResourceProvisioners = "provisioners"

	Work = "work" // of a provisioner: its jobs
	Read = "read" // of a provisioner: reading the cluster for a job, as the service account of its instance
)

// What a provisioner does with a job that it took: POST work/<job>/<action>, but for JobContent, which is got.
const (
	JobContent = "content" // the tree of files, as a tar archive, whole or from a byte on ("Range: bytes=N-")
	JobRenew   = "renew"   // it is still at it
	JobResult  = "result"  // it is done: a Result
)

// ParameterWait of POST work says for how many seconds the answer may be waited for.
const ParameterWait = "wait"

// JobKind says what is to be done.
type JobKind string

// The kinds of jobs.
const (
	// JobValidate checks the parameters of a class. There is no content.
	JobValidate JobKind = "Validate"
	// JobRender checks the parameters and the content, and then renders it.
	JobRender JobKind = "Render"
)

// Job is what a provisioner has to do.
type Job struct {
	metav1.TypeMeta `json:",inline"`
	// ID cannot be guessed. Whoever took the job names it with all that is done for it.
	ID   string  `json:"id"`
	Kind JobKind `json:"kind"`
	// LeaseSeconds is how long the job is his without a sign of life. After that it is given to another.
	LeaseSeconds int `json:"leaseSeconds"`
	// Instance is the BundleInstance; absent of a JobValidate, as are the fields below Parameters.
	Instance *InstanceName `json:"instance,omitempty"`
	// Parameters of the class, a JSON object; absent if it has none.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Content is the digest of the tree of files. The same digest stands for the same files.
	Content string `json:"content,omitempty"`
	// Config of the instance, a JSON object; absent if it has none.
	Config json.RawMessage `json:"config,omitempty"`
	// Revision is the number of the revision that is made of the result.
	Revision int64 `json:"revision,omitempty"`
	// Upgrade says that a revision has been active before.
	Upgrade bool `json:"upgrade,omitempty"`
	// Origins say where the parts of the content came from, in the order of the bundle's sources; absent where that is not
	// known. The same content may have others later, and is rendered again then.
	Origins []Origin `json:"origins,omitempty"`
	// Cluster says what the cluster is like.
	Cluster *ClusterFacts `json:"cluster,omitempty"`
	// Reads says that the cluster can be read for this job.
	Reads bool `json:"reads,omitempty"`
}

// InstanceName names a BundleInstance.
type InstanceName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Origin is a provisioner.Origin.
type Origin struct {
	Path string `json:"path,omitempty"`
	Kind string `json:"kind"`
	Ref  string `json:"ref"`
}

// ClusterFacts are those of provisioner.Cluster.
type ClusterFacts struct {
	Version string   `json:"version,omitempty"`
	APIs    []string `json:"apis,omitempty"`
}

// Result is what became of a job: Faults, or Error, or else what was rendered.
type Result struct {
	// Phases in the order of their activation.
	Phases []Phase `json:"phases,omitempty"`
	// Nothing says that there are no objects on purpose.
	Nothing      bool            `json:"nothing,omitempty"`
	Notes        string          `json:"notes,omitempty"`
	ConfigSchema json.RawMessage `json:"configSchema,omitempty"`
	Varies       []string        `json:"varies,omitempty"`
	// Faults of the content, the parameters or the configuration. The job is not tried again until one of them changes.
	Faults []Fault `json:"faults,omitempty"`
	// Error is any other. The job is tried again later.
	Error string `json:"error,omitempty"`
	// HandedBack says that the provisioner ends before it is done. The job is given to another.
	HandedBack bool `json:"handedBack,omitempty"`
}

// Phase is a provisioner.Phase.
type Phase struct {
	Name    string                       `json:"name"`
	On      []string                     `json:"on,omitempty"`
	Objects []*unstructured.Unstructured `json:"objects"`
}

// Fault is a provisioner.InputError.
type Fault struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Object string `json:"object,omitempty"`
	Reason string `json:"reason"`
}

// ReadRequest asks for one object or, without a name, for all of a namespace or of the cluster.
type ReadRequest struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// ReadAnswer has the objects, or what the API server said instead.
type ReadAnswer struct {
	Items  []*unstructured.Unstructured `json:"items,omitempty"`
	Status *metav1.Status               `json:"status,omitempty"`
}
