// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/internal/plan"
)

// permissions are nil where the plan does not know them: a rule that asks for them fails then.
func permissions(of *plan.Permissions) (*policy.Permissions, *policy.PodSecurity) {
	if of == nil || of.Unknown != "" {
		return nil, nil
	}
	out := &policy.Permissions{}
	for _, item := range of.Gained.Items() {
		if item.Power == permission.PowerMayGain {
			out.MayGain = append(out.MayGain, permissionOf(item))
		} else {
			out.Gained = append(out.Gained, permissionOf(item))
		}
	}
	for _, item := range of.Lost.Items() {
		out.Lost = append(out.Lost, permissionOf(item))
	}
	return out, &policy.PodSecurity{Before: of.PodSecurity.Before, After: of.PodSecurity.After, Reasons: of.PodSecurity.Reasons}
}

func permissionOf(item permission.Item) policy.Permission {
	return policy.Permission{
		Power: item.Power, Subject: policy.Subject(item.Subject), Namespace: item.Namespace,
		Verbs: item.Rule.Verbs, Groups: item.Rule.APIGroups, Resources: item.Rule.Resources, Names: item.Rule.ResourceNames, URLs: item.Rule.NonResourceURLs,
		What: item.What, Value: item.Value, Text: item.Text,
	}
}
