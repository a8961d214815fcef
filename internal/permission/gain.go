// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Ways to more than what rules say.
const (
	WayBind         = "Bind"               // grant any role, or the named ones
	WayEscalate     = "Escalate"           // put anything into roles
	WayImpersonate  = "Impersonate"        // act as others
	WayRunAs        = "RunAsAccount"       // make Pods, which run as any account of the namespace
	WayEnterPods    = "EnterPods"          // run programs in Pods of others, with what these may do
	WayTokens       = "Tokens"             // get tokens of accounts
	WaySecrets      = "ReadSecrets"        // read Secrets, which may hold tokens and keys
	WayCertificates = "SignCertificates"   // approve or sign certificates of any user
	WayAdmission    = "WriteAdmission"     // see or change requests of others, by webhooks and policies
	WayServeAPIs    = "ServeAPIs"          // answer for the API server, by API services and conversions
	WayNodes        = "Nodes"              // act on nodes, and with their rights
	WayVolumes      = "HostVolumes"        // reach files of nodes, by volumes
	WayPodSecurity  = "LiftPodSecurity"    // change labels of namespaces, which bound what Pods may do
	WayRelease      = "ApproveContent"     // let content of RukPak become active
	WayAggregation  = "AggregatedRole"     // a role of the content gets the rules of whatever role has its labels some day
	WayMissingRole  = "MissingRole"        // a binding names a role that does not exist: whoever makes it decides
	WayForeign      = "ForeignSecret"      // Pods read a Secret that the content does not bring
	WayCustom       = "CustomResource"     // what a controller of others makes of a custom resource
	WayUnknown      = "Unknown"            // what cannot be read or compared
	WayTraffic      = "DivertTraffic"      // traffic for addresses comes to the content, or its Services lead to them
	WayCSITokens    = "TokensOfVolumeUser" // a CSI driver gets tokens of the Pods that use its volumes
)

// Gain is a way to more. The content itself has it if there is no subject.
type Gain struct {
	Subject   *Subject `json:"subject,omitempty"`
	Namespace string   `json:"namespace,omitempty"` // where, "" for everywhere
	Way       string   `json:"way"`
	Value     string   `json:"value,omitempty"` // what is named, "" for anything
}

func (g Gain) compare(o Gain) int { return cmp.Compare(encoded(g), encoded(o)) }

// probe finds a way in rules: those that allow one of the verbs on one of the resources.
type probe struct {
	way, group, resource string
	verbs                []string
	clusterOnly          bool // the resource has no namespace, so that what is granted in one does nothing
}

const (
	admissionGroup = "admissionregistration.k8s.io"
	csrGroup       = "certificates.k8s.io"
)

var (
	write = []string{"create", "update", "patch"}
	look  = []string{"get", "list", "watch"}
)

var probes = slices.Concat(
	each(WayBind, rbacv1.GroupName, []string{"bind"}, false, "roles", "clusterroles"),
	each(WayEscalate, rbacv1.GroupName, []string{"escalate"}, false, "roles", "clusterroles"),
	each(WayImpersonate, "", []string{"impersonate"}, false, "users", "groups", "serviceaccounts"),
	each(WayImpersonate, "authentication.k8s.io", []string{"impersonate"}, true, "uids"),
	each(WayRunAs, "", write, false, "pods", "replicationcontrollers"),
	each(WayRunAs, "apps", write, false, "deployments", "daemonsets", "statefulsets", "replicasets"),
	each(WayRunAs, "batch", write, false, "jobs", "cronjobs"),
	each(WayEnterPods, "", []string{"create", "get"}, false, "pods/exec", "pods/attach"),
	each(WayEnterPods, "", []string{"update", "patch"}, false, "pods/ephemeralcontainers"),
	each(WayTokens, "", []string{"create"}, false, "serviceaccounts/token"),
	each(WaySecrets, "", look, false, "secrets"),
	each(WayCertificates, csrGroup, []string{"approve", "sign"}, true, "signers"),
	each(WayAdmission, admissionGroup, write, true, "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
	each(WayServeAPIs, "apiregistration.k8s.io", write, true, "apiservices"),
	each(WayServeAPIs, "apiextensions.k8s.io", write, true, "customresourcedefinitions"),
	each(WayNodes, "", []string{"get", "create", "update", "patch", "delete"}, true, "nodes/proxy"),
	each(WayNodes, "", write, true, "nodes"),
	each(WayVolumes, "", write, true, "persistentvolumes"),
	each(WayPodSecurity, "", []string{"update", "patch"}, true, "namespaces"),
	each(WayRelease, "rukpak.io", append([]string{"approve", "use"}, write...), true, "provisionerclasses"),
	each(WayRelease, "rukpak.io", []string{"manage"}, true, "instancerevisions"),
)

func each(way, group string, verbs []string, clusterOnly bool, resources ...string) []probe {
	var all []probe
	for _, resource := range resources {
		all = append(all, probe{way: way, group: group, resource: resource, verbs: verbs, clusterOnly: clusterOnly})
	}
	return all
}

func (p probe) matches(t target, allowed verbs) bool {
	if t.path != "" || t.group != "*" && t.group != p.group {
		return false
	}
	below := subresource(p.resource)
	if t.resource != "*" && t.resource != p.resource && (below == "" || t.resource != "*/"+below) {
		return false
	}
	return allowed.any() || slices.ContainsFunc(p.verbs, func(verb string) bool { return verbsOf(verb).minus(allowed).empty() })
}

// gains lists the ways to more that the content has.
func (c *content) gains(held map[Subject]scoped) []Gain {
	all := append(c.ownGains(), c.oversized...)
	full := NewRules(everything()...)
	for s, byNamespace := range held {
		if byNamespace[""].Covers(full) {
			continue // there is no more
		}
		for namespace, rules := range byNamespace {
			for way, values := range waysOf(rules, namespace) {
				if way == WayRunAs {
					values = c.runsAs(s, byNamespace, namespace)
				}
				for _, value := range values {
					all = append(all, Gain{Subject: &s, Namespace: namespace, Way: way, Value: value})
				}
			}
		}
	}
	slices.SortFunc(all, Gain.compare)
	return slices.CompactFunc(all, func(a, b Gain) bool { return a.compare(b) == 0 })
}

// waysOf gives the ways in rules, with what they name. One that is for anything names nothing else.
func waysOf(rules *Rules, namespace string) map[string][]string {
	found := map[string]map[string]bool{}
	for t, allowed := range rules.set {
		for _, p := range probes {
			if p.clusterOnly && namespace != "" || !p.matches(t, allowed) {
				continue
			}
			if found[p.way] == nil {
				found[p.way] = map[string]bool{}
			}
			value := ""
			if t.named {
				value = p.resource + " " + t.name
			}
			found[p.way][value] = true
		}
	}
	ways := map[string][]string{}
	for way, values := range found {
		if values[""] {
			ways[way] = []string{""}
			continue
		}
		ways[way] = slices.Sorted(maps.Keys(values))
	}
	return ways
}

// maxStrong bounds how many accounts of a namespace are looked at, to say which hold more.
const maxStrong = 50

// runsAs names the accounts of a namespace that hold what a subject does not: by making Pods it gets to that. "" is any
// account, where there are many, or in all namespaces.
func (c *content) runsAs(s Subject, own scoped, namespace string) []string {
	if namespace == "" {
		return []string{""}
	}
	found := map[string]bool{}
	c.world.eachBinding(func(b *binding) {
		for _, other := range b.subjects {
			if other.Kind == rbacv1.ServiceAccountKind && other.Namespace == namespace && other != s {
				found[other.Name] = true
			}
		}
	})
	if len(found) > maxStrong {
		return []string{""}
	}
	var stronger []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		theirs := scoped(c.world.held([]Subject{AccountSubject(namespace, name)}))
		if len(theirs.minus(own)) > 0 {
			stronger = append(stronger, "serviceaccounts "+name)
		}
	}
	return stronger
}
