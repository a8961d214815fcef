// SPDX-License-Identifier: Apache-2.0

// Package policy decides on a revision by the rules of its class, in CEL. In the flow (source -> unpack -> content store ->
// provisioner.Render -> plan -> approval -> activate -> watch) it belongs to approval: it takes what is known of a revision
// before anything is written, and says whether the class approves it, denies it, or wants people to decide.
//
// It is pure: the same rules and Facts give the same Verdict. Facts are what rules see; docs/policies.md lists them for
// those who write rules, and a test holds that list to the types in this package. Rules are checked against these types, and
// for what they may cost, when they are compiled, so that a mistake is told when a class is written and not when a revision
// waits.
//
// Whatever goes wrong never approves: a rule that fails wants a person (see Policy.Judge), and a fact that is not known is
// an error for the rule that asks for it, not an empty value.
package policy
