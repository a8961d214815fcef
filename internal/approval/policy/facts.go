// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Facts are all that rules see: its fields are the variables of CEL. The types below are also those of CEL, with the names
// of JSON. The tag doc is the text of docs/policies.md; max is how many items a list or map is taken to have, and len how
// many bytes a text, when it is estimated what a rule costs.
//
// A nil pointer is a fact that is not known: a rule that asks for it fails, unless it asks with has() before.
type Facts struct {
	Plan      Plan      `json:"plan"      doc:"what activation would change"`
	Bundle    Bundle    `json:"bundle"    doc:"the content"`
	Instance  Instance  `json:"instance"  doc:"the BundleInstance"`
	Namespace Namespace `json:"ns"        doc:"the namespace of the instance; CEL reserves the word namespace"`
	Request   Request   `json:"request"   doc:"who asked for the revision"`
	Revision  Revision  `json:"revision"  doc:"the revision itself"`
	Now       time.Time `json:"now,omitzero" doc:"the time of the verdict. getHours('Europe/Berlin'), getDayOfWeek('UTC') (0 is Sunday) and others take it apart"`
}

// Plan is what activation would change.
type Plan struct {
	Against            int64        `json:"against,omitempty"     doc:"number of the revision that was active when the plan was made, 0 if none was"`
	Added              int64        `json:"added"                 doc:"objects that would be created"`
	Changed            int64        `json:"changed"               doc:"objects that would be changed"`
	Removed            int64        `json:"removed"               doc:"objects that would be deleted"`
	Unchanged          int64        `json:"unchanged"             doc:"objects that would stay as they are"`
	Tasks              int64        `json:"tasks,omitempty"       doc:"tasks that would run"`
	Kept               int64        `json:"kept,omitempty"        doc:"objects that are no longer in the content but would stay"`
	Conflicts          int64        `json:"conflicts,omitempty"   doc:"objects that are somebody else's"`
	Failing            int64        `json:"failing,omitempty"     doc:"other objects at which activation would fail"`
	Objects            []Object     `json:"objects,omitempty"     doc:"the objects that would not stay as they are" max:"50000"`
	Images             []Image      `json:"images,omitempty"      doc:"the images that Pods and templates of Pods name, each once" max:"5000"`
	CRDs               CRDs         `json:"crds,omitzero"         doc:"upgrades of CustomResourceDefinitions"`
	Permissions        *Permissions `json:"permissions,omitempty" doc:"what the content may do, against the revision that was active"`
	PodSecurity        *PodSecurity `json:"podSecurity,omitempty" doc:"what Pods of the content need to be allowed"`
	MissingPermissions []string     `json:"missingPermissions,omitempty" doc:"what the service account lacks to activate it, a line each" max:"5000" len:"512"`
}

// Object is one that would not stay as it is.
type Object struct {
	Action    string `json:"action"              doc:"Add, Change, Remove, Keep, Run (a task) or Conflict; Unchanged only with a problem" len:"16"`
	Group     string `json:"group,omitempty"     doc:"API group, empty for the core group" len:"253"`
	Kind      string `json:"kind"                doc:"kind" len:"63"`
	Namespace string `json:"namespace,omitempty" doc:"namespace, empty for what has none" len:"63"`
	Name      string `json:"name"                doc:"name" len:"253"`
	Adopted   bool   `json:"adopted,omitempty"   doc:"it is taken from somebody else"`
	Recreated bool   `json:"recreated,omitempty" doc:"it is deleted and created, since a field cannot be changed"`
	Problem   string `json:"problem,omitempty"   doc:"why activation would fail at it, such as Collision, ImmutableField or Rejected" len:"63"`
}

// Image is a reference to an image, taken apart.
type Image struct {
	Reference  string `json:"reference"            doc:"as the object has it" len:"512"`
	Registry   string `json:"registry,omitempty"   doc:"host, docker.io where none is named; empty for what is no reference" len:"253"`
	Repository string `json:"repository,omitempty" doc:"path in the registry, such as library/nginx" len:"255"`
	Tag        string `json:"tag,omitempty"        doc:"tag; latest where there is neither tag nor digest" len:"128"`
	Digest     string `json:"digest,omitempty"     doc:"digest, empty if it is not pinned" len:"135"`
}

// CRDs are upgrades of definitions.
type CRDs struct {
	Findings []CRDFinding `json:"findings,omitempty" doc:"what new definitions would break" max:"5000"`
}

// CRDFinding is one thing that a new definition would break.
type CRDFinding struct {
	Rule    string `json:"rule"              doc:"one of docs/crd-upgrades.md" len:"63"`
	Action  string `json:"action"            doc:"Block or Warn" len:"16"`
	Level   string `json:"level,omitempty"   doc:"the same as action in lower case: block or warn" len:"16"`
	CRD     string `json:"crd"               doc:"name of the definition" len:"253"`
	Version string `json:"version,omitempty" doc:"version of the schema" len:"128"`
	Path    string `json:"path,omitempty"    doc:"path of the field" len:"512"`
	Message string `json:"message,omitempty" doc:"what changes" len:"600"`
}

// Permissions are the difference of what the content may do.
type Permissions struct {
	Gained  []Permission `json:"gained,omitempty"  doc:"what it may do that it might not do before" max:"10000"`
	Lost    []Permission `json:"lost,omitempty"    doc:"what it might do before and may no longer" max:"10000"`
	MayGain []Permission `json:"mayGain,omitempty" doc:"new ways to more, of which it cannot be known what they lead to" max:"10000"`
}

// Permission is one power.
type Permission struct {
	Power     string   `json:"power"               doc:"Grant (a rule of RBAC), MayGain, Account, Pod, Intercept, Owns, Namespace or Registry" len:"16"`
	Subject   Subject  `json:"subject,omitzero"    doc:"who has it; the content itself if it is empty"`
	Namespace string   `json:"namespace,omitempty" doc:"where; empty for everywhere" len:"63"`
	Verbs     []string `json:"verbs,omitempty"     doc:"verbs of a Grant, operations of an Intercept; * for all" max:"32" len:"63"`
	Groups    []string `json:"groups,omitempty"    doc:"API groups; * for all" max:"32" len:"253"`
	Resources []string `json:"resources,omitempty" doc:"resources, with subresource as in pods/exec; * for all" max:"64" len:"128"`
	Names     []string `json:"names,omitempty"     doc:"names of objects; empty for all" max:"64" len:"253"`
	URLs      []string `json:"urls,omitempty"      doc:"paths of the API server" max:"32" len:"253"`
	What      string   `json:"what,omitempty"      doc:"which: the way of a MayGain, what of a Pod, by what of an Intercept, the kind of an Owns" len:"63"`
	Value     string   `json:"value,omitempty"     doc:"what is named: a path, a capability, an account, a registry" len:"512"`
	Text      string   `json:"text,omitempty"      doc:"all of it for people, in one line" len:"1024"`
}

// Subject is who may do something.
type Subject struct {
	Kind      string `json:"kind,omitempty"      doc:"ServiceAccount, User or Group" len:"16"`
	Namespace string `json:"namespace,omitempty" doc:"of a ServiceAccount" len:"63"`
	Name      string `json:"name,omitempty"      doc:"name" len:"253"`
}

// PodSecurity is by the Pod Security Standards.
type PodSecurity struct {
	Before  string   `json:"before,omitempty"  doc:"level that the Pods of the active revision need: restricted, baseline or privileged; empty if it has none" len:"16"`
	After   string   `json:"after,omitempty"   doc:"level that those of this revision need" len:"16"`
	Reasons []string `json:"reasons,omitempty" doc:"what keeps them from restricted, a line each" max:"1000" len:"512"`
}

// Bundle is the content.
type Bundle struct {
	Verified   bool        `json:"verified"             doc:"each source of the bundle has a signature that the verification of the class asks for; one that only the bundle asks for does not count"`
	Signatures []Signature `json:"signatures,omitempty" doc:"the signatures that were asked for and found, also those that only the bundle asks for" max:"32"`
	Sources    []Source    `json:"sources,omitempty"    doc:"where the content comes from" max:"32"`
	Version    *Version    `json:"version,omitempty"    doc:"the version of the content, if it is one of semver"`
}

// Signature is one that counts.
type Signature struct {
	Source  int64  `json:"source"            doc:"index in bundle.sources"`
	AskedBy string `json:"askedBy,omitempty" doc:"class/ and the name of the class; or source, where whoever wrote the bundle chose the key" len:"128"`
	Method  string `json:"method,omitempty"  doc:"cosign key, cosign keyless or notation" len:"32"`
	Signer  string `json:"signer,omitempty"  doc:"fingerprint of the key, or the identity in the certificate" len:"512"`
}

// Source is where content comes from.
type Source struct {
	Type      string `json:"type"                doc:"kind of the source, such as oci, git or inline" len:"32"`
	Reference string `json:"reference,omitempty" doc:"what the bundle names, such as a reference or an address" len:"1024"`
	Digest    string `json:"digest,omitempty"    doc:"to what it is pinned" len:"135"`
}

// Version of the content, as semver has them, without a leading v.
type Version struct {
	From string `json:"from,omitempty" doc:"of the revision that was active; absent if there was none, or it had no version" len:"128"`
	To   string `json:"to"             doc:"of this revision" len:"128"`
}

// Instance is the BundleInstance.
type Instance struct {
	Name           string            `json:"name"                     doc:"name" len:"63"`
	Namespace      string            `json:"namespace"                doc:"namespace" len:"63"`
	Labels         map[string]string `json:"labels,omitempty"         doc:"labels" max:"256" len:"317"`
	Annotations    map[string]string `json:"annotations,omitempty"    doc:"annotations" max:"256" len:"4096"`
	ServiceAccount string            `json:"serviceAccount,omitempty" doc:"service account as which it is applied and healed" len:"253"`
}

// Namespace is that of the instance.
type Namespace struct {
	Name   string            `json:"name"             doc:"name" len:"63"`
	Labels map[string]string `json:"labels,omitempty" doc:"labels" max:"256" len:"317"`
}

// Request is who asked.
type Request struct {
	Users []string `json:"users,omitempty" doc:"who changed the instance since the revision that was active was made; empty if the API server noted nobody" max:"32" len:"1024"`
}

// Revision is what is decided on.
type Revision struct {
	Number    int64  `json:"number"             doc:"number, from 1"`
	Rollback  bool   `json:"rollback,omitempty" doc:"its manifests are those of an earlier revision"`
	Installer string `json:"installer,omitempty" doc:"namespace/name of the account as which it would be activated, if it is not the service account" len:"320"`
}
