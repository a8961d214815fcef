// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Action is what becomes of a finding.
type Action string

const (
	// Block keeps the revision from being activated.
	Block Action = "Block"
	// Warn shows the finding and goes on.
	Warn Action = "Warn"
	// Allow drops the finding.
	Allow Action = "Allow"
)

var actions = []Action{Block, Warn, Allow}

// Policy gives rules their action. A rule that it does not name has the default: Allow for Description, Warn for
// LiveUnread, Block for all others. So a nil Policy is the default one.
type Policy map[Rule]Action

// Action is the action of a rule.
func (p Policy) Action(rule Rule) Action {
	if action, named := p[rule]; named {
		return action
	}
	for _, entry := range defaults {
		if entry.rule == rule {
			return entry.action
		}
	}
	return Block
}

// ParsePolicy reads a policy from names of rules and actions. With others, which may be empty, the rules that are not
// named have that action rather than their default. The error names every unknown rule and action, and the known ones.
func ParsePolicy(others string, named map[string]string) (Policy, error) {
	policy := Policy{}
	var faults []error
	if others != "" {
		action, err := parseAction(others)
		if err != nil {
			faults = append(faults, fmt.Errorf("default action: %w", err))
		}
		for _, rule := range Rules() {
			policy[rule] = action
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		action, err := parseAction(named[name])
		switch {
		case !slices.Contains(Rules(), Rule(name)):
			faults = append(faults, fmt.Errorf("unknown rule %q: known are %s", name, list(Rules())))
		case err != nil:
			faults = append(faults, fmt.Errorf("rule %q: %w", name, err))
		default:
			policy[Rule(name)] = action
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return policy, nil
}

func parseAction(name string) (Action, error) {
	if !slices.Contains(actions, Action(name)) {
		return "", fmt.Errorf("unknown action %q: known are %s", name, list(actions))
	}
	return Action(name), nil
}

func list[T ~string](of []T) string {
	var names []string
	for _, name := range of {
		names = append(names, string(name))
	}
	return strings.Join(names, ", ")
}
