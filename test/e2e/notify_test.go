// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/notify"
)

func TestApproversAreToldAndNobodyWaitsForThat(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	var mu sync.Mutex
	var events []event.Event
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got event.Event
		if err := json.Unmarshal(body, &got); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		events = append(events, got)
	}))
	t.Cleanup(chat.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	told := func(want ...string) []event.Event {
		t.Helper()
		a.eventually(fmt.Sprintf("events %q", want), func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			var got []string
			for _, one := range events {
				got = append(got, one.Subject()+" "+one.Type())
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(events)
	}
	a.changeClass(func(p *v1alpha1.ApprovalPolicy) {
		p.Notify = []v1alpha1.ApprovalNotice{{Name: "gone", URL: gone.URL}, {Name: "chat", URL: chat.URL}}
	})
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	first := told("app-1 " + notify.Waiting)[0]
	var data notify.Data
	if err := first.DataAs(&data); err != nil {
		t.Fatal(err)
	}
	of := a.revision("app-1")
	if data.Namespace != a.namespace || data.ManifestDigest != string(of.Spec.ManifestDigest) || data.Plan == nil || data.Plan.Added != 1 {
		t.Errorf("the event has %+v", data)
	}
	if got := a.person("ann").votes("ann", "app-1"); got != v1alpha1.ReasonCounted {
		t.Fatalf("the approval: %s", got)
	}
	a.ready("app") // though one of the two cannot be told
	told("app-1 "+notify.Waiting, "app-1 "+notify.Approved)
	a.eventually("the revision says who was not told", func(context.Context) error {
		of := a.revision("app-1")
		found := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionNotified)
		if found == nil || found.Status != metav1.ConditionFalse || found.Reason != v1alpha1.ReasonNotifyFailed {
			return fmt.Errorf("it says %+v", found)
		}
		return nil
	})
	a.changeClass(func(p *v1alpha1.ApprovalPolicy) { p.Notify = p.Notify[1:] })
	a.eventually("the revision says that all were told", func(context.Context) error {
		of := a.revision("app-1")
		if !meta.IsStatusConditionTrue(of.Status.Conditions, v1alpha1.ConditionNotified) {
			return fmt.Errorf("it says %+v", of.Status.Conditions)
		}
		return nil
	})
	told("app-1 "+notify.Waiting, "app-1 "+notify.Approved)
}
