// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var (
	shop  = Owner{UID: "uid-shop", Namespace: "prod", Name: "shop"}
	other = Owner{UID: "uid-other", Namespace: "prod", Name: "other"}
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestIdentityHasNoVersion(t *testing.T) {
	old := object(t, `{"apiVersion":"rbac.authorization.k8s.io/v1beta1","kind":"Role","metadata":{"namespace":"a","name":"b"}}`)
	now := object(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"namespace":"a","name":"b"}}`)
	if IDOf(old) != IDOf(now) {
		t.Errorf("got %v and %v, want the same", IDOf(old), IDOf(now))
	}
}

func TestIdentityInWords(t *testing.T) {
	for want, id := range map[string]ID{
		"Deployment.apps prod/web": {Group: "apps", Kind: "Deployment", Namespace: "prod", Name: "web"},
		"ConfigMap prod/web":       {Kind: "ConfigMap", Namespace: "prod", Name: "web"},
		"Namespace prod":           {Kind: "Namespace", Name: "prod"},
	} {
		if got := id.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestIdentitiesHaveAnOrder(t *testing.T) {
	sorted := []ID{{Kind: "A", Name: "z"}, {Kind: "B", Namespace: "a", Name: "b"}, {Kind: "B", Namespace: "b", Name: "a"}, {Group: "a", Kind: "A"}}
	for i := range sorted {
		for j := range sorted {
			if got := sorted[i].Less(sorted[j]); got != (i < j) {
				t.Errorf("%v before %v: got %v", sorted[i], sorted[j], got)
			}
		}
	}
}

func TestMarkGoesIntoMetadataOnly(t *testing.T) {
	mark := map[string]any{LabelInstanceUID: "uid-shop", LabelInstanceName: "shop", LabelInstanceNamespace: "prod"}
	with := func(key, value string) map[string]any {
		all := map[string]any{key: value}
		for k, v := range mark {
			all[k] = v
		}
		return all
	}
	tests := map[string]struct {
		reason, in string
		labels     any
	}{
		"NoLabels":    {in: `{"metadata":{"name":"x"}}`, labels: mark},
		"NullLabels":  {reason: "an empty key in YAML is null", in: `{"metadata":{"labels":null}}`, labels: mark},
		"NoMetadata":  {in: `{}`, labels: mark},
		"OtherLabels": {reason: "the content's own labels stay", in: `{"metadata":{"labels":{"app":"web"}}}`, labels: with("app", "web")},
		"OtherMark":   {reason: "content cannot claim to be another's", in: `{"metadata":{"labels":{"rukpak.io/instance-uid":"else"}}}`, labels: mark},
		"Malformed":   {reason: "the API server is to refuse it", in: `{"metadata":{"labels":"app"}}`, labels: "app"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := object(t, test.in)
			marked := Mark(in, shop)
			got, _, _ := unstructured.NestedFieldNoCopy(marked.Object, "metadata", "labels")
			if diff := cmp.Diff(test.labels, got); diff != "" {
				t.Errorf("%s: labels (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(object(t, test.in), in); diff != "" {
				t.Errorf("the original changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestMarkLeavesSelectorsAndTemplates(t *testing.T) {
	in := `{"kind":"Deployment","metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}}}}}`
	if diff := cmp.Diff(object(t, in).Object["spec"], Mark(object(t, in), shop).Object["spec"]); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
}

func TestOwnerIsReadBackFromTheMark(t *testing.T) {
	marked := Mark(object(t, `{"metadata":{"name":"x"}}`), shop)
	if got, ok := OwnerOf(marked); !ok || got != shop {
		t.Errorf("got %v, %v", got, ok)
	}
	if got, ok := OwnerOf(object(t, `{"metadata":{"name":"x"}}`)); ok {
		t.Errorf("no mark: got %v", got)
	}
}

func TestMarkCopiedByAControllerDoesNotCount(t *testing.T) {
	child := Mark(object(t, `{"metadata":{"name":"web-x7z"}}`), shop)
	yes := true
	child.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Service", Name: "web", Controller: &yes}})
	if got, ok := OwnerOf(child); ok {
		t.Errorf("labels copied to an EndpointSlice: got owner %v", got)
	}
	child.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate}})
	if _, ok := OwnerOf(child); !ok {
		t.Error("an object of ours that a controller took too (a Pod by a ReplicaSet) is still ours")
	}
}

func TestWhoMayTakeWhat(t *testing.T) {
	const plain = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"prod","name":"x"}}`
	const controlled = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"prod","name":"x","ownerReferences":[{"kind":"Shop","name":"s","controller":true}]}}`
	tests := map[string]struct {
		live string
		mark *Owner
		gone bool
		want map[Adoption]string // "" or the error
	}{
		"Ours": {live: plain, mark: &shop, want: map[Adoption]string{}},
		"Unmarked": {live: plain, want: map[Adoption]string{
			AdoptNever: "ConfigMap prod/x exists and belongs to nobody that is known; BundleInstance prod/shop may not take it: to take it set spec.strategy.adoption of the instance to Unowned (\"rukpak update shop --adoption Unowned\"), or delete it",
		}},
		"Controlled": {live: controlled, want: map[Adoption]string{
			AdoptNever:   "ConfigMap prod/x exists and belongs to its controller Shop s; BundleInstance prod/shop may not take it: to take it set spec.strategy.adoption of the instance to Force (\"rukpak update shop --adoption Force\"), or rename one of the two",
			AdoptUnowned: "ConfigMap prod/x exists and belongs to its controller Shop s; BundleInstance prod/shop may not take it: to take it set spec.strategy.adoption of the instance to Force (\"rukpak update shop --adoption Force\"), or rename one of the two",
		}},
		"OtherAlive": {live: plain, mark: &other, want: map[Adoption]string{
			AdoptNever:   "ConfigMap prod/x exists and belongs to BundleInstance prod/other; BundleInstance prod/shop may not take it: to take it set spec.strategy.adoption of the instance to Force (\"rukpak update shop --adoption Force\"), or rename one of the two",
			AdoptUnowned: "ConfigMap prod/x exists and belongs to BundleInstance prod/other; BundleInstance prod/shop may not take it: to take it set spec.strategy.adoption of the instance to Force (\"rukpak update shop --adoption Force\"), or rename one of the two",
		}},
		"OtherGone": {live: plain, mark: &other, gone: true, want: map[Adoption]string{
			AdoptNever: "ConfigMap prod/x exists and was left by BundleInstance prod/other, which is gone; BundleInstance prod/shop may not take it: to take it set spec.strategy.adoption of the instance to Unowned (\"rukpak update shop --adoption Unowned\"), or delete it",
		}},
	}
	for name, test := range tests {
		for _, mode := range []Adoption{AdoptNever, AdoptUnowned, AdoptForce} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				live := object(t, test.live)
				if test.mark != nil {
					live = Mark(live, *test.mark)
				}
				err := MayTake(live, shop, mode, func(types.UID) bool { return !test.gone })
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != test.want[mode] {
					t.Errorf("\ngot  %s\nwant %s", got, test.want[mode])
				}
				if err != nil && !errors.As(err, new(*CollisionError)) {
					t.Errorf("got a %T", err)
				}
			})
		}
	}
}

func TestWithoutKnowledgeEveryInstanceLives(t *testing.T) {
	live := Mark(object(t, `{"metadata":{"name":"x"}}`), other)
	if err := MayTake(live, shop, AdoptUnowned, nil); err == nil {
		t.Error("taken from an instance that may exist")
	}
}
