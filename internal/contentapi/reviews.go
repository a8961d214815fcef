// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
)

// How long an answer of the API server is believed. Short, so that a role that
// is given or taken away counts soon.
const (
	allowTTL   = 10 * time.Second
	denyTTL    = 2 * time.Second
	maxAnswers = 4096
)

// reviews asks the API server who may what.
type reviews struct {
	api     kubernetes.Interface
	answers *utilcache.LRUExpireCache
}

func newReviews(api kubernetes.Interface) *reviews {
	return &reviews{api: api, answers: utilcache.NewLRUExpireCache(maxAnswers)}
}

// refused gives "" if the user may, and else text that may say why not.
func (v *reviews) refused(ctx context.Context, who user.Info, info *request.RequestInfo) (string, error) {
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return "", nil // as everywhere in Kubernetes
	}
	spec := reviewOf(who, info)
	asked, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	if known, ok := v.answers.Get(string(asked)); ok {
		return known.(string), nil
	}
	answer, err := v.api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	refused, ttl := "", allowTTL
	if !answer.Status.Allowed {
		refused, ttl = " ", denyTTL
		if answer.Status.Reason != "" {
			refused = ": " + answer.Status.Reason
		}
	}
	v.answers.Add(string(asked), refused, ttl)
	return refused, nil
}

func reviewOf(who user.Info, info *request.RequestInfo) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: info.Namespace, Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion,
			Resource: info.Resource, Subresource: info.Subresource, Name: info.Name,
		},
	}
	for key, values := range who.GetExtra() {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
	return spec
}
