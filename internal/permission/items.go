// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
)

// Kinds of powers, as Item.Power has them: the fields of Powers.
const (
	PowerGrant     = "Grant"
	PowerMayGain   = "MayGain"
	PowerAccount   = "Account"
	PowerPod       = "Pod"
	PowerIntercept = "Intercept"
	PowerOwns      = "Owns"
	PowerNamespace = "Namespace"
	PowerRegistry  = "Registry"
)

// Item is one power by itself, and in words.
type Item struct {
	Power     string
	Subject   Subject // who has it; the content itself if it has no name
	Namespace string  // where; "" for everywhere
	// Rule is that of a Grant, and what an Intercept sees: its verbs are operations then.
	Rule rbacv1.PolicyRule
	What string // the way of a MayGain, what of a Pod, by what of an Intercept, the kind of an Owns
	// Value is what is named: a path, a capability, an account, a registry.
	Value string
	// Text is one line. What is no plain text in it is quoted, so that names cannot look like others.
	Text string
	// Weight sorts: 0 is what gives most.
	Weight int
}

// Items are all powers one by one, the gravest first.
func (p *Powers) Items() []Item {
	var all []Item
	for _, g := range p.Grants {
		for _, rule := range g.Rules {
			for _, piece := range pieces(rule) {
				all = append(all, grantItem(g, piece))
			}
		}
	}
	for _, g := range p.MayGain {
		all = append(all, gainItem(g))
	}
	for _, a := range p.Accounts {
		all = append(all, accountItem(a))
	}
	for _, one := range p.Pods {
		all = append(all, podItem(one))
	}
	for _, i := range p.Intercepts {
		all = append(all, interceptItem(i))
	}
	for _, o := range p.Owns {
		item := Item{Power: PowerOwns, What: o.Kind, Value: o.Name, Weight: 3, Text: "brings " + safely(kindOf(o.Group, o.Kind)) + named(o.Name)}
		all = append(all, item)
	}
	for _, n := range p.Namespaces {
		all = append(all, Item{Power: PowerNamespace, Namespace: n, Value: n, Weight: 3, Text: "has objects in namespace " + safely(n)})
	}
	for _, r := range p.Registries {
		all = append(all, Item{Power: PowerRegistry, Value: r.Name, Weight: 3, Text: "runs images of " + registryName(r.Name)})
	}
	slices.SortStableFunc(all, func(a, b Item) int { return cmp.Or(a.Weight-b.Weight, cmp.Compare(a.Text, b.Text)) })
	return all
}

func kindOf(group, kind string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " " + safely(name)
}

func registryName(host string) string {
	if host == "" {
		return "what no container runtime understands"
	}
	return safely(host)
}

// safely is a text as it is, or quoted if there is something in it that could look like something else. What has quotes or
// backslashes itself could look like what is quoted.
func safely(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

func (s Subject) safely() string {
	if s.Namespace != "" {
		return safely(s.Kind) + " " + safely(s.Namespace) + "/" + safely(s.Name)
	}
	return safely(s.Kind) + " " + safely(s.Name) // an API server would refuse other kinds, but the plan is shown before
}

func place(namespace string) string {
	if namespace == "" {
		return "everywhere"
	}
	return "in namespace " + safely(namespace)
}

func grantItem(g Grant, rule rbacv1.PolicyRule) Item {
	item := Item{Power: PowerGrant, Subject: g.Subject, Namespace: g.Namespace, Rule: rule, Weight: weightOf(rule)}
	what := "paths " + listed(rule.NonResourceURLs)
	where := place(g.Namespace)
	if len(rule.NonResourceURLs) == 0 {
		what = resourcesText(rule)
	} else if g.Namespace == "" {
		where = "of the API server"
	}
	if slices.Contains(rule.Verbs, rbacv1.VerbAll) && slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) && slices.Contains(rule.Resources, rbacv1.ResourceAll) && len(rule.ResourceNames) == 0 {
		item.Text = g.Subject.safely() + " may do everything " + where
		return item
	}
	item.Text = g.Subject.safely() + " may " + verbsText(rule.Verbs) + " " + what + " " + where
	return item
}

func verbsText(verbs []string) string {
	if slices.Contains(verbs, rbacv1.VerbAll) {
		return "do anything with"
	}
	return listed(verbs)
}

func resourcesText(rule rbacv1.PolicyRule) string {
	all := slices.Contains(rule.Resources, rbacv1.ResourceAll)
	groups := ""
	switch {
	case slices.Contains(rule.APIGroups, rbacv1.APIGroupAll):
		groups = " of all API groups"
	case len(rule.APIGroups) == 1 && rule.APIGroups[0] == "" && !all:
	case len(rule.APIGroups) == 1 && rule.APIGroups[0] == "":
		groups = " of the core API group"
	default:
		var names []string
		for _, group := range rule.APIGroups {
			if group == "" {
				group = "core"
			}
			names = append(names, group)
		}
		groups = " of API group " + listed(names)
	}
	text := listed(rule.Resources) + groups
	if all {
		text = "all resources" + groups
	}
	if len(rule.ResourceNames) > 0 {
		text += " named " + listed(rule.ResourceNames)
	}
	return text
}

// maxListed bounds how many names of a kind a line has, and maxText how long they are together.
const (
	maxListed = 12
	maxText   = 120
)

// pieces are rules that together allow the same, each short enough to be told whole: nothing grave hides behind what is long.
func pieces(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	all := []rbacv1.PolicyRule{rule}
	for _, list := range []func(*rbacv1.PolicyRule) *[]string{
		func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
		func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
		func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
		func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	} {
		parts := chunks(*list(&rule))
		if len(parts) < 2 {
			continue
		}
		var finer []rbacv1.PolicyRule
		for _, one := range all {
			for _, part := range parts {
				*list(&one) = part
				finer = append(finer, one)
			}
		}
		all = finer
	}
	return all
}

// chunks parts names so that each part is short.
func chunks(names []string) [][]string {
	var parts [][]string
	begin, size := 0, 0
	for i, name := range names {
		if i > begin && (i-begin == maxListed || size+len(name) > maxText) {
			parts = append(parts, names[begin:i])
			begin, size = i, 0
		}
		size += len(name)
	}
	return append(parts, names[begin:])
}

func listed(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), maxListed)] {
		out = append(out, safely(name))
	}
	text := strings.Join(out, ", ")
	if more := len(names) - maxListed; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// weightOf a rule: 0 for wildcards and what the ways to more rest on, 1 for what reads or runs much, 2 for all else.
func weightOf(rule rbacv1.PolicyRule) int {
	for _, verb := range []string{"escalate", "bind", "impersonate", "approve", "sign"} {
		if slices.Contains(rule.Verbs, verb) {
			return 0
		}
	}
	wild := slices.Contains(rule.Verbs, rbacv1.VerbAll) || slices.Contains(rule.NonResourceURLs, rbacv1.NonResourceAll)
	if slices.Contains(rule.Resources, rbacv1.ResourceAll) && (wild || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)) {
		return 0
	}
	if wild || slices.Contains(rule.Resources, rbacv1.ResourceAll) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) {
		return 1
	}
	for _, resource := range []string{"secrets", "pods/exec", "pods/attach", "serviceaccounts/token", "nodes/proxy"} {
		if slices.Contains(rule.Resources, resource) {
			return 1
		}
	}
	return 2
}

func accountItem(a Account) Item {
	item := Item{
		Power: PowerAccount, Subject: AccountSubject(a.Namespace, a.Name), Namespace: a.Namespace, What: "Foreign", Value: a.Name, Weight: 1,
		Text: "runs as " + AccountSubject(a.Namespace, a.Name).safely() + ", which it does not bring",
	}
	if a.Owned {
		item.What, item.Weight, item.Text = "Own", 3, "brings "+item.Subject.safely()
	}
	if len(a.Tokens) > 0 {
		item.Text += "; tokens of it are in " + listed(a.Tokens)
	}
	return item
}

func podItem(p PodPower) Item {
	item := Item{Power: PowerPod, Namespace: p.Namespace, What: p.What, Value: p.Value, Weight: 1}
	texts := map[string]string{
		PodLevel: "need Pod Security level ", PodViolates: "break the Pod Security rule ", PodHostPath: "read and write the node's path ",
		PodHostPathRead: "read the node's path ", PodHostNamespace: "share the node's namespace ", PodPrivileged: "run privileged", PodCapability: "have the capability ",
	}
	item.Text = "Pods " + place(p.Namespace) + " " + texts[p.What]
	switch {
	case p.What == PodPrivileged:
	case p.What == PodViolates:
		item.Text += strconv.QuoteToASCII(p.Value)
	default:
		item.Text += safely(p.Value)
	}
	switch {
	case p.What == PodLevel && p.Value == string(api.LevelPrivileged), p.What == PodHostPath, p.What == PodHostNamespace, p.What == PodPrivileged:
		item.Weight = 0
	case p.What == PodLevel && p.Value == string(api.LevelRestricted):
		item.Weight = 3
	case p.What == PodLevel, p.What == PodViolates:
		item.Weight = 2
	}
	return item
}

func interceptItem(i Intercept) Item {
	item := Item{
		Power: PowerIntercept, What: i.By, Value: i.Target,
		Rule: rbacv1.PolicyRule{Verbs: []string{i.Operation}, APIGroups: []string{i.Group}, Resources: []string{i.Resource}},
	}
	does := map[string]string{
		MutatingWebhook: "sees, changes and refuses", ValidatingWebhook: "sees and refuses", MutatingPolicy: "changes", ValidatingPolicy: "refuses",
		Conversion: "sees and changes the stored", APIService: "answers",
	}[i.By]
	if i.By == ValidatingPolicy || i.By == ValidatingWebhook {
		item.Weight = 1
	}
	operation := " requests of all operations for "
	if i.Operation != "*" {
		operation = " requests to " + safely(i.Operation) + " "
	}
	if i.By == Conversion {
		operation = " objects of "
	}
	item.Text = i.By + " " + does + operation + resourcesText(rbacv1.PolicyRule{Resources: []string{i.Resource}, APIGroups: []string{i.Group}})
	if i.Only != "" {
		item.Text += ", narrowed by conditions"
	}
	if i.Target != "" {
		item.Text += ", by " + safely(i.Target)
	}
	return item
}

// waysText says in words where a way leads.
var waysText = map[string]string{
	WayBind: "by granting roles", WayEscalate: "by putting anything into roles", WayImpersonate: "by acting as others",
	WayRunAs: "by making Pods that run as other accounts", WayEnterPods: "by running programs in Pods of others", WayTokens: "by getting tokens of accounts",
	WaySecrets: "by reading Secrets, which may hold tokens and keys", WayCertificates: "by signing certificates of users",
	WayAdmission: "by webhooks and policies that see or change requests of others", WayServeAPIs: "by answering for the API server",
	WayNodes: "by acting on nodes", WayVolumes: "by volumes that are paths of nodes", WayPodSecurity: "by labels of namespaces, which bound what Pods may do",
	WayRelease: "by letting content of RukPak become active", WayAggregation: "by a role that gets the rules of whatever role has its labels",
	WayMissingRole: "by a binding to a role that does not exist", WayForeign: "by a Secret that it does not bring",
	WayCustom: "by what a controller makes of a custom resource", WayUnknown: "by what cannot be read or compared",
	WayTraffic: "by Services of which nobody checks that the addresses are its own", WayCSITokens: "by tokens of the Pods that use its volumes",
}

func gainItem(g Gain) Item {
	item := Item{Power: PowerMayGain, Namespace: g.Namespace, What: g.Way, Value: g.Value}
	who := "the content"
	if g.Subject != nil {
		item.Subject = *g.Subject
		who = g.Subject.safely()
	}
	item.Text = who + " may gain more " + place(g.Namespace) + ", " + waysText[g.Way]
	if g.Value != "" {
		item.Text += " (" + safely(g.Value) + ")"
	}
	if slices.Contains([]string{WayForeign, WayCustom, WaySecrets, WayRelease}, g.Way) {
		item.Weight = 1
	}
	return item
}
