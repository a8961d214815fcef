// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/api/v1alpha1"
)

const (
	approve = v1alpha1.RuleApproves
	deny    = v1alpha1.RuleDenies
	require = v1alpha1.RuleRequires
)

func when(text string) v1alpha1.ApprovalRule {
	return v1alpha1.ApprovalRule{Name: "rule", When: text, Then: approve}
}

func named(name, text string) v1alpha1.ApprovalRule {
	one := when(text)
	one.Name = name
	return one
}

func compiled(t testing.TB, rules ...v1alpha1.ApprovalRule) *Policy {
	t.Helper()
	p, err := Compile(rules)
	if err != nil {
		t.Fatalf("%s: %v", rules[0].When, err)
	}
	return p
}

// facts of a small plan.
func facts() *Facts {
	return &Facts{
		Plan: Plan{
			Against: 3, Added: 1, Changed: 1, Unchanged: 5,
			Objects: []Object{
				{Action: "Add", Kind: "ConfigMap", Namespace: "web", Name: "settings"},
				{Action: "Change", Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"},
			},
			Images: []Image{{Reference: "registry.example.com/web:1.2", Registry: "registry.example.com", Repository: "web", Tag: "1.2"}},
			CRDs:   CRDs{Findings: []CRDFinding{{Rule: "FieldRemoved", Action: "Warn", Level: "warn", CRD: "widgets.example.com"}}},
			Permissions: &Permissions{Gained: []Permission{{
				Power: "Grant", Subject: Subject{Kind: "ServiceAccount", Namespace: "web", Name: "web"}, Verbs: []string{"get"}, Groups: []string{""}, Resources: []string{"secrets"},
			}}},
			PodSecurity: &PodSecurity{Before: "restricted", After: "baseline", Reasons: []string{"runAsNonRoot"}},
		},
		Bundle:    Bundle{Verified: true, Version: &Version{From: "1.2.3", To: "1.2.4"}, Sources: []Source{{Type: "oci", Reference: "registry.example.com/app:1"}}},
		Instance:  Instance{Name: "web", Namespace: "web", Labels: map[string]string{"tier": "front"}},
		Namespace: Namespace{Name: "web", Labels: map[string]string{"environment": "production"}},
		Request:   Request{Users: []string{"ann"}},
		Revision:  Revision{Number: 4},
		Now:       time.Date(2026, 7, 3, 22, 30, 0, 0, time.UTC), // a Friday; in Berlin it is Saturday
	}
}

func TestRulesSeeAllFacts(t *testing.T) {
	for _, text := range []string{
		"plan.added == 1 && plan.removed == 0 && plan.against == 3",
		"plan.objects.size() == 2 && plan.objects[1].group == 'apps' && !plan.objects[1].adopted",
		"plan.objects.exists(o, o.action == 'Add' && o.kind == 'ConfigMap' && o.name.startsWith('set'))",
		"plan.objects.filter(o, o.action == 'Change').map(o, o.kind) == ['Deployment']",
		"plan.images.all(i, i.registry in ['registry.example.com'] && i.repository.matches('^web$') && i.digest == '')",
		"plan.crds.findings.exists(f, f.rule == 'FieldRemoved' && f.level == 'warn')",
		"has(plan.permissions) && plan.permissions.gained.exists(p, 'secrets' in p.resources && p.subject.name == 'web')",
		"plan.permissions.lost.size() + plan.permissions.mayGain.size() == 0",
		"plan.podSecurity.before != plan.podSecurity.after && plan.podSecurity.reasons.exists(r, r.contains('NonRoot'))",
		"bundle.verified && bundle.signatures == [] && bundle.sources[0].type == 'oci'",
		"has(bundle.version.from) && semver(bundle.version.to).isGreaterThan(semver(bundle.version.from)) && semver(bundle.version.to).minor() == 2",
		"instance.labels['tier'] == 'front' && instance.labels[?'x'].orValue('') == '' && !('y' in instance.annotations)",
		"ns.labels.environment == 'production' && ns.name == instance.namespace",
		"request.users == ['ann'] && 'ann' in request.users",
		"revision.number == 4 && !revision.rollback",
		"now.getDayOfWeek('UTC') == 5 && now.getDayOfWeek('Europe/Berlin') == 6 && now.getHours('Europe/Berlin') == 0 && now.getHours('+01:00') == 23",
		"now > timestamp('2026-07-03T00:00:00Z') && now - timestamp('2026-07-03T00:00:00Z') < duration('24h')",
		"dyn(plan).objects[0].kind == 'ConfigMap' && has(dyn(bundle).version)",
		"type(plan) == type(plan) && plan.objects[0] != plan.objects[1] && plan.objects[0] == plan.objects[0]",
		"quantity('1k').isGreaterThan(quantity('1')) && ip('10.0.0.1').family() == 4 && 'a1'.find('[0-9]') == '1' && [1, 2].isSorted()",
		"cel.bind(n, plan.objects.size(), n == 2)",
	} {
		if !strings.Contains(text, "cel.bind") { // Kubernetes does not have it
			if got := compiled(t, when(text)).Judge(facts()); got.Effect != approve {
				t.Errorf("%s: %+v", text, got)
			}
		}
	}
}

func TestMistakesAreToldWithRuleAndPlace(t *testing.T) {
	for text, want := range map[string]string{
		"plan.permissions.gaind.size() == 0":               `spec.approval.rules[0] "rule": line 1, column 17: undefined field 'gaind' (is gained meant?)`,
		"true &&\n plan.objects.exists(o, o.knd == 'a')":   `line 2, column 26: undefined field 'knd' (is kind meant?)`,
		"plann.added == 0":                                 "undeclared reference to 'plann' (in container '') (is plan meant?)",
		"plan.added == 'a'":                                "found no matching overload for '_==_'",
		"plan.added":                                       "gives int, not true or false",
		"dyn(plan).added":                                  "gives dyn, not true or false",
		"plan.added ==":                                    "Syntax error",
		" ":                                                "when is empty",
		strings.Repeat("true && ", 600) + "true":           "when has 4804 bytes; at most 4096 are allowed",
		"plan.images.all(i, i.tag.matches('['))":           "invalid matches argument",
		"now.getHours('Europe/Berln') > 3":                 `there is no time zone "Europe/Berln"`,
		"now > timestamp('tomorrow')":                      "invalid timestamp argument",
		"plan.objects.all(a, plan.objects.all(b, a == b))": "for a large plan, more than the 1.0e+08 that a rule may",
		"plan.objects.all(a, plan.permissions.gained.all(p, p.text != a.name))": "do not look at a list for each item of another",
	} {
		p, err := Compile([]v1alpha1.ApprovalRule{when(text)})
		if err == nil || p != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %s", text, err, want)
		}
		var one *RuleError
		if !errors.As(err, &one) || one.Index != 0 || one.Name != "rule" || strings.Contains(one.Error(), "\n") {
			t.Errorf("%.80s: %#v", text, err)
		}
	}
}

func TestAllRulesAreChecked(t *testing.T) {
	_, err := Compile([]v1alpha1.ApprovalRule{
		{Name: "fine", When: "true", Then: approve},
		{Name: "fine", When: "true", Then: "approve"},
		{Name: "No growth", When: "plan.x == 1", Then: deny, Approvals: 1},
		{Name: "many", When: "y", Then: require, Approvals: 11},
	})
	want := `spec.approval.rules[1] "fine": another rule has this name
spec.approval.rules[1] "fine": then is "approve"; it may be Approve, Deny or Require
spec.approval.rules[2] "No growth": name must be at most 63 lower-case letters, digits and hyphens, such as no-growth
spec.approval.rules[2] "No growth": approvals and groups are only for a rule that says Require
spec.approval.rules[2] "No growth": line 1, column 5: undefined field 'x'
spec.approval.rules[3] "many": approvals is 11; it may be 1 to 10
spec.approval.rules[3] "many": line 1, column 1: undeclared reference to 'y' (in container '')`
	if err == nil {
		t.Fatal("all is taken")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Compile(make([]v1alpha1.ApprovalRule, MaxRules+1)); err == nil || !strings.Contains(err.Error(), "there are 33 rules; at most 32 are allowed") {
		t.Errorf("too many: %.100v", err)
	}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	rules := func(list ...string) (out []v1alpha1.ApprovalRule) {
		for _, text := range list {
			name, rest, _ := strings.Cut(text, ": ")
			then, expression, _ := strings.Cut(rest, " if ")
			one := v1alpha1.ApprovalRule{Name: name, When: expression, Message: "since " + name}
			switch then {
			case "approve":
				one.Then = approve
			case "deny":
				one.Then = deny
			case "two of a":
				one.Then, one.Approvals, one.Groups = require, 2, []string{"a"}
			case "three":
				one.Then, one.Approvals = require, 3
			case "some":
				one.Then = require
			}
			out = append(out, one)
		}
		return out
	}
	const fails = "plan.objects[7].name == ''"
	const because = `rule "x" failed: index out of bounds: 7`
	for name, test := range map[string]struct {
		rules []v1alpha1.ApprovalRule
		want  Verdict
		trace string
	}{
		"none":           {nil, Verdict{Effect: require}, ""},
		"no match":       {rules("x: approve if false"), Verdict{Effect: require}, "NotMatched"},
		"first of two":   {rules("x: deny if true", "y: approve if true"), Verdict{Rule: "x", Effect: deny, Message: "since x"}, "Matched NotAsked"},
		"second of two":  {rules("x: deny if false", "y: approve if true"), Verdict{Rule: "y", Effect: approve, Message: "since y"}, "NotMatched Matched"},
		"require":        {rules("x: two of a if true"), Verdict{Rule: "x", Effect: require, Approvals: 2, Groups: []string{"a"}, Message: "since x"}, "Matched"},
		"require some":   {rules("x: some if true"), Verdict{Rule: "x", Effect: require, Approvals: 1, Message: "since x"}, "Matched"},
		"approve fails":  {rules("x: approve if " + fails), Verdict{Rule: "x", Effect: require, Approvals: 1, Message: because}, "Error"},
		"deny fails":     {rules("x: deny if "+fails, "y: approve if true"), Verdict{Rule: "x", Effect: require, Approvals: 1, Message: because}, "Error Matched"},
		"fails, no more": {rules("x: deny if "+fails, "y: approve if false"), Verdict{Rule: "x", Effect: require, Approvals: 1, Message: because}, "Error NotMatched"},
		"fails, denied":  {rules("x: approve if "+fails, "y: deny if true"), Verdict{Rule: "y", Effect: deny, Message: "since y; " + because}, "Error Matched"},
		"fails, three":   {rules("x: approve if "+fails, "y: three if true"), Verdict{Rule: "y", Effect: require, Approvals: 3, Message: "since y; " + because}, "Error Matched"},
		"two fail":       {rules("x: two of a if "+fails, "y: approve if true"), Verdict{Rule: "x", Effect: require, Approvals: 2, Groups: []string{"a"}, Message: because}, "Error Matched"},
		"two fail, one":  {rules("x: two of a if "+fails, "y: some if true"), Verdict{Rule: "y", Effect: require, Approvals: 2, Groups: []string{"a"}, Message: "since y; " + because}, "Error Matched"},
	} {
		t.Run(name, func(t *testing.T) {
			got := compiled(t, test.rules...).Judge(facts())
			var trace []string
			for _, step := range got.Trace {
				trace = append(trace, string(step.Outcome))
			}
			got.Trace = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.trace, strings.Join(trace, " ")); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
		})
	}
	if got := (*Policy)(nil).Judge(nil); got.Effect != require || got.Rule != "" {
		t.Errorf("no policy: %+v", got)
	}
	if got := Unusable(errors.New("a\nb")); got.Effect != require || got.Approvals != 1 || !strings.HasSuffix(got.Message, "cannot be used: a b") {
		t.Errorf("%+v", got)
	}
}

// What is not known is no empty value: a rule that approves by it does not.
func TestWhatIsNotKnownApprovesNothing(t *testing.T) {
	for text, want := range map[string]string{
		"plan.permissions.gained.size() == 0":                      "permissions is not known",
		"dyn(plan).permissions.gained.size() == 0":                 "permissions is not known",
		"plan.podSecurity.after == ''":                             "podSecurity is not known",
		"bundle.version.to == ''":                                  "version is not known",
		"plan.objects.all(o, plan.permissions.lost == [])":         "permissions is not known",
		"instance.labels['a'] == ''":                               "no such key: a",
		"semver('x').major() == 1":                                 "", // whatever it says
		"!(plan.permissions.gained.exists(p, p.power == 'Grant'))": "permissions is not known",
	} {
		unknown := facts()
		unknown.Plan.Permissions, unknown.Plan.PodSecurity, unknown.Bundle.Version = nil, nil, nil
		got := compiled(t, when(text)).Judge(unknown)
		if got.Effect != require || got.Approvals != 1 || got.Trace[0].Outcome != Faulty || !strings.Contains(got.Message, want) {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
	if got := compiled(t, when("!has(plan.permissions) && !has(bundle.version) && !has(dyn(plan).podSecurity) && plan.?permissions.?gained == optional.none()")).Judge(&Facts{}); got.Effect != approve {
		t.Errorf("has: %+v", got)
	}
}

// What is cheap by estimate may be costly all the same, and facts may be larger than foreseen: then the rule fails.
func TestCostsAreBounded(t *testing.T) {
	large := facts()
	large.Plan.Objects = make([]Object, 50_000)
	looks := "plan.objects.all(o, o.kind == '' && o.name == '' && !o.adopted)"
	if got := compiled(t, when(looks)).Judge(large); got.Effect != approve {
		t.Errorf("%+v", got)
	}
	got := compiled(t, when(strings.Repeat(looks+" && ", 10)+looks)).Judge(large)
	if got.Effect != require || !strings.Contains(got.Message, "it looks at more than the 500000 items that a rule may") {
		t.Errorf("%+v", got)
	}
	large.Plan.Objects = make([]Object, 50_001)
	got = compiled(t, when("true")).Judge(large)
	if got.Effect != require || !strings.Contains(got.Message, "plan.objects has 50001 items, more than the 50000 that rules are made for") {
		t.Errorf("%+v", got)
	}
}

func TestPoliciesTellIfTheyDependOnTheTime(t *testing.T) {
	for text, want := range map[string]bool{"now.getHours() > 3": true, "plan.added == 1": false} {
		if got := compiled(t, when(text), v1alpha1.ApprovalRule{Name: "other", When: "true", Then: deny}).Timed(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestPoliciesAreCompiledAnewWhenTheClassChanges(t *testing.T) {
	var book Book
	class := &v1alpha1.ProvisionerClass{}
	class.UID, class.Generation = "a", 1
	if p, err := book.Of(class); p != nil || err != nil {
		t.Errorf("mode Manual: %v, %v", p, err)
	}
	class.Spec.Approval = v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalByPolicy, Rules: []v1alpha1.ApprovalRule{when("true")}}
	first, err := book.Of(class)
	if again, _ := book.Of(class); err != nil || first == nil || again != first {
		t.Errorf("%v, %v, %v", first, again, err)
	}
	class.Generation, class.Spec.Approval.Rules[0].When = 2, "fasle"
	if p, err := book.Of(class); p != nil || err == nil {
		t.Errorf("changed: %v, %v", p, err)
	}
}
