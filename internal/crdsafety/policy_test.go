// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/crdsafety"
)

func TestPolicyIsRead(t *testing.T) {
	policy, err := crdsafety.ParsePolicy("", map[string]string{"enum": "Warn", "scope": "Allow"})
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[crdsafety.Rule]crdsafety.Action{
		crdsafety.Enum: crdsafety.Warn, crdsafety.Scope: crdsafety.Allow, crdsafety.Type: crdsafety.Block,
		crdsafety.Description: crdsafety.Allow, crdsafety.LiveUnread: crdsafety.Warn, crdsafety.LiveInvalid: crdsafety.Block,
	} {
		if got := policy.Action(rule); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
	policy, err = crdsafety.ParsePolicy("Warn", map[string]string{"enum": "Block"})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range crdsafety.Rules() {
		want := crdsafety.Warn
		if rule == crdsafety.Enum {
			want = crdsafety.Block
		}
		if got := policy.Action(rule); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
}

func TestBadPolicyNamesWhatIsUnknownAndWhatIsKnown(t *testing.T) {
	_, err := crdsafety.ParsePolicy("Maybe", map[string]string{"enums": "Warn", "scope": "warn", "type": "Block"})
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{
		`default action: unknown action "Maybe": known are Block, Warn, Allow`, `rule "scope": unknown action "warn"`,
		`unknown rule "enums": known are scope, storedVersionRemoval, existingFieldRemoval, type, required, enum,`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), `"type"`) {
		t.Errorf("what is right is named too:\n%v", err)
	}
}

func TestEveryRuleHasOneDefault(t *testing.T) {
	seen := map[crdsafety.Rule]bool{}
	for _, rule := range crdsafety.Rules() {
		if seen[rule] {
			t.Errorf("%s is twice in the list", rule)
		}
		seen[rule] = true
	}
	if len(seen) != 22 {
		t.Errorf("%d rules, want 19 about schemas and 3 about custom resources", len(seen))
	}
}
