// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiserver_request_total does not tell who sent a request. Flow schemas do: the API server counts requests by the
// schema that they fall under, and a schema can be for certain users and verbs. These two are for the manager and for
// all service accounts of tenants, as which it acts; their level is the one that service accounts have anyway.
const (
	managerWrites = "bench-manager-writes"
	managerReads  = "bench-manager-reads"
)

func (s *stage) countManager(ctx context.Context) error {
	if err := s.client.Create(ctx, flow(managerWrites, 500, "create", "update", "patch", "delete", "deletecollection")); err != nil {
		return err
	}
	return s.client.Create(ctx, flow(managerReads, 501, "get", "list", "watch"))
}

func flow(name string, precedence int32, verbs ...string) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-low"},
			MatchingPrecedence:         precedence,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					inGroup("system:serviceaccounts:" + managerNamespace), inGroup("system:serviceaccounts:" + tenants),
				},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: verbs, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
				}},
			}},
		},
	}
}

func inGroup(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}}
}
