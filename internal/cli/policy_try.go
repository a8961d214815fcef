// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/approval/policy/evidence"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/internal/plural"
)

// policyTested is one item of `policy test -o json`.
type policyTested struct {
	File string `json:"file"`
	policy.Result
}

type policyTestVerb struct {
	*session
	output output
	plans  []string
	at     string
	moment time.Time
}

func (s *session) policyTestCommand() *cobra.Command {
	v := &policyTestVerb{session: s}
	cmd := &cobra.Command{
		Use:   "test POLICY [CASES...]",
		Short: "Try rules on cases with expected verdicts, and on saved plans",
		Long: `Judges by the rules of a file, and tells which rule decides.

A file of cases has facts and the verdict that they must have:

    facts: {bundle: {verified: true}}      # what all cases have in common
    cases:
    - name: a role grows
      facts: {plan: {permissions: {gained: [{power: Grant, verbs: [get], resources: [secrets]}]}}}
      want: {effect: Require, rule: no-growth}

--plan takes what "rukpak plan REVISION -o yaml" (or json) printed, or facts by themselves, and tells the verdict. A saved
plan has no labels and nothing about who asked; it is judged by the time that it is now, or that --at says.

It exits with 0 if all cases have the verdict that they must have, with 5 if one has not or a rule is wrong.`,
		Example: `  rukpak policy test class.yaml cases.yaml
  rukpak plan web-2 -o yaml > web-2.yaml && rukpak policy test class.yaml --plan web-2.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if len(args) == 1 && len(v.plans) == 0 {
				return usagef(cmd, "there is nothing to judge: name files of cases, or plans with --plan")
			}
			v.moment = v.now()
			if v.at != "" {
				var err error
				if v.moment, err = time.Parse(time.RFC3339, v.at); err != nil {
					return usagef(cmd, "--at is %q; a time is written such as 2026-12-24T18:00:00Z", v.at)
				}
			}
			return v.run(args[0], args[1:])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().StringArrayVar(&v.plans, "plan", nil, "File with a saved plan or with facts, whose verdict is told; may be given several times")
	cmd.Flags().StringVar(&v.at, "at", "", "Time to judge saved plans by, such as 2026-12-24T18:00:00Z; now by default")
	return cmd
}

func (v *policyTestVerb) run(file string, caseFiles []string) error {
	compiled, _, err := readPolicy(file)
	if err != nil {
		return err
	}
	all := []policyTested{}
	for _, name := range caseFiles {
		text, err := readText(name)
		if err != nil {
			return err
		}
		cases, err := policy.ReadCases(text)
		if err != nil {
			return failf(ExitFailed, "%s: %w", name, err)
		}
		for _, one := range cases {
			all = append(all, policyTested{File: name, Result: compiled.Try(one)})
		}
	}
	for _, name := range v.plans {
		facts, err := v.factsOf(name)
		if err != nil {
			return err
		}
		all = append(all, policyTested{File: name, Result: policy.Result{Name: filepath.Base(name), Verdict: compiled.Judge(facts)}})
	}
	return v.show(all)
}

// factsOf reads a saved plan, or facts.
func (v *policyTestVerb) factsOf(file string) (*policy.Facts, error) {
	text, err := readText(file)
	if err != nil {
		return nil, err
	}
	var saved planValue
	encoded, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = json.Unmarshal(encoded, &saved)
	}
	switch {
	case err == nil && slices.Contains([]string{"null", "{}"}, string(encoded)):
		// Such as a command that failed leaves. It would be judged as a plan in which nothing happens.
		return nil, failf(ExitFailed, "%s: it is empty: neither a saved plan nor facts", file)
	case policy.IsCases(text):
		return nil, failf(ExitFailed, "%s: these are cases, not a plan", file).hintf("name the file without --plan")
	case err == nil && saved.Full != nil:
		return v.factsIn(file, saved)
	case err == nil && saved.Revision != "" && saved.ManifestDigest != "":
		return nil, failf(ExitFailed, "%s: it is only the summary of a plan, which may be cut", file).
			hintf("save it without --summary, as somebody who may read Secrets in that namespace")
	}
	facts, err := policy.ReadFacts(text)
	if err != nil {
		return nil, failf(ExitFailed, "%s: it is neither a saved plan nor facts: %w", file, err)
	}
	if facts.Now.IsZero() {
		facts.Now = v.moment
	}
	return facts, nil
}

// factsIn are those of a saved plan that is whole.
func (v *policyTestVerb) factsIn(file string, saved planValue) (*policy.Facts, error) {
	full, err := json.Marshal(saved.Full)
	if err != nil {
		return nil, err
	}
	decoded, err := plan.Decode(full)
	if err != nil {
		return nil, failf(ExitFailed, "%s: %w", file, err)
	}
	instance := &v1alpha1.BundleInstance{}
	instance.Name = saved.Instance
	return evidence.Of(evidence.Input{Plan: decoded, Summary: saved.Summary, Revision: &v1alpha1.InstanceRevision{}, Instance: instance, Now: v.moment}), nil
}

func (v *policyTestVerb) show(all []policyTested) error {
	failed := 0
	for _, one := range all {
		if one.Problem != "" {
			failed++
		}
	}
	if v.output.forPeople() {
		v.tell(all)
	} else if err := v.value(all, v.output.format); err != nil {
		return err
	}
	if failed > 0 {
		return failf(ExitFailed, "%s of %d failed", plural.Of(failed, "case"), len(all))
	}
	return nil
}

func (v *policyTestVerb) tell(all []policyTested) {
	painter := v.painter()
	for _, one := range all {
		mark := painter.Good("✓")
		if one.Problem != "" {
			mark = painter.Bad("✗")
		}
		v.print("%s %s: %s", mark, paint.Clean(one.Name), paint.Clean(verdictLine(one.Verdict)))
		if one.Problem != "" {
			v.print("    %s", paint.Clean(one.Problem))
		}
	}
}

// verdictLine is a verdict for people.
func verdictLine(verdict policy.Verdict) string {
	text := string(verdict.Effect)
	if verdict.Effect == v1alpha1.RuleRequires && verdict.Approvals > 0 {
		text += fmt.Sprintf(" %d", verdict.Approvals)
	}
	if len(verdict.Groups) > 0 {
		text += fmt.Sprintf(" of %q", verdict.Groups)
	}
	if verdict.Rule == "" {
		text += " (no rule matches: people decide)"
	} else {
		text += fmt.Sprintf(" by rule %q", verdict.Rule)
	}
	if verdict.Message != "" {
		text += ": " + verdict.Message
	}
	return text
}
