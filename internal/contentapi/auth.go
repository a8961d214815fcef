// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	authunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// Where an API server of Kubernetes says how it proves itself to those behind it.
const (
	authenticationNamespace = "kube-system"
	authenticationConfigMap = "extension-apiserver-authentication"
)

// gate lets requests pass that Kubernetes authenticates and authorises.
type gate struct {
	who     authenticator.Request
	may     *reviews
	infos   request.RequestInfoResolver
	proxyCA *dynamiccertificates.ConfigMapCAController
	headers *headerrequest.RequestHeaderAuthRequestController
}

func newGate(api kubernetes.Interface) (*gate, error) {
	proxyCA, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
		"request-header", authenticationNamespace, authenticationConfigMap, "requestheader-client-ca-file", api)
	if err != nil {
		return nil, err
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(
		authenticationConfigMap, authenticationNamespace, api,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	proxy := headerrequest.NewDynamicVerifyOptionsSecure(proxyCA.VerifyOptions,
		headerrequest.StringSliceProviderFunc(headers.AllowedClientNames), headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
		headerrequest.StringSliceProviderFunc(headers.UIDHeaders), headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
		headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes))
	tokens := cache.New(tokenReviews{api}, false, allowTTL, denyTTL)
	return &gate{
		who:     group.NewAuthenticatedGroupAdder(authunion.New(proxy, bearertoken.New(tokens))),
		may:     newReviews(api),
		infos:   &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()},
		proxyCA: proxyCA, headers: headers,
	}, nil
}

// start reads how the API server proves itself, and follows changes of that
// until ctx ends.
func (g *gate) start(ctx context.Context) error {
	if err := errors.Join(g.proxyCA.RunOnce(ctx), g.headers.RunOnce(ctx)); err != nil {
		return fmt.Errorf("read ConfigMap %s/%s, which says how the API server proves itself: %w", authenticationNamespace, authenticationConfigMap, err)
	}
	go g.proxyCA.Run(ctx, 1)
	go g.headers.Run(ctx, 1)
	return nil
}

// pass gives what a request asks for and who asks, or why he may not. Discovery,
// which holds nothing of anybody, is open to all who are known.
func (g *gate) pass(r *http.Request) (*request.RequestInfo, user.Info, error) {
	found, ok, err := g.who.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, nil, apierrors.NewUnauthorized("the content API does not know you: come by way of the API server, or with a token of it")
	}
	info, err := g.infos.NewRequestInfo(r)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if !info.IsResourceRequest {
		return info, found.User, nil
	}
	reason, err := g.may.refused(r.Context(), found.User, info)
	if err != nil {
		return nil, nil, apierrors.NewServiceUnavailable("the API server does not say whether you may: " + err.Error())
	}
	if reason != "" {
		return nil, nil, forbidden(found.User, info, reason)
	}
	return info, found.User, nil
}

func forbidden(who user.Info, info *request.RequestInfo, reason string) error {
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	where := fmt.Sprintf("in namespace %q", info.Namespace)
	if info.Namespace == "" {
		where = fmt.Sprintf("with the name %q, which a ClusterRole gives", info.Name)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: resource}, info.Name,
		fmt.Errorf("user %q lacks the verb %q on %s.%s %s%s", who.GetName(), info.Verb, resource, info.APIGroup, where, strings.TrimRight(reason, " ")))
}

// tokenReviews asks the API server whose a token is, for those who come
// directly.
type tokenReviews struct{ api kubernetes.Interface }

func (t tokenReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	answer, err := t.api.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil || !answer.Status.Authenticated {
		return nil, false, err
	}
	who := answer.Status.User
	extra := map[string][]string{}
	for key, values := range who.Extra {
		extra[key] = values
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra}}, true, nil
}
