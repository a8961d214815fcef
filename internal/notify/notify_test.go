// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

type condition struct {
	of     string
	status metav1.ConditionStatus
	reason string
}

var since = time.Date(2026, 12, 2, 9, 30, 0, 0, time.UTC)

func revision(all ...condition) *v1alpha1.InstanceRevision {
	of := &v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2", UID: "u"}}
	for _, one := range all {
		meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{Type: one.of, Status: one.status, Reason: one.reason, LastTransitionTime: metav1.NewTime(since)})
	}
	return of
}

var (
	planned  = condition{v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned}
	waits    = condition{v1alpha1.ConditionApproved, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval}
	approved = condition{v1alpha1.ConditionApproved, metav1.ConditionTrue, v1alpha1.ReasonApproved}
	denied   = condition{v1alpha1.ConditionDenied, metav1.ConditionTrue, v1alpha1.ReasonDenied}
)

func TestStates(t *testing.T) {
	for name, test := range map[string]struct {
		all  []condition
		want []string
	}{
		"new":                 {nil, nil},
		"not planned":         {[]condition{waits}, nil},
		"waits":               {[]condition{planned, waits}, []string{Waiting}},
		"approved":            {[]condition{planned, approved}, []string{Approved}},
		"denied unplanned":    {[]condition{denied, waits}, []string{Denied}},
		"replaced":            {[]condition{planned, waits, {v1alpha1.ConditionActive, metav1.ConditionFalse, v1alpha1.ReasonReplaced}}, nil},
		"replaced, for later": {[]condition{planned, {v1alpha1.ConditionApproved, metav1.ConditionFalse, v1alpha1.ReasonReplaced}}, nil},
		"superseded":          {[]condition{planned, approved, {v1alpha1.ConditionSuperseded, metav1.ConditionTrue, v1alpha1.ReasonSuperseded}}, nil},
		"not yet superseded":  {[]condition{planned, approved, {v1alpha1.ConditionSuperseded, metav1.ConditionFalse, v1alpha1.ReasonPruning}}, []string{Approved}},
		"removals wait":       {[]condition{planned, approved, {v1alpha1.ConditionPruneApproved, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval}}, []string{Approved, PruneWaiting}},
		"removals denied":     {[]condition{planned, approved, {v1alpha1.ConditionPruneApproved, metav1.ConditionFalse, v1alpha1.ReasonDenied}}, []string{Approved}},
	} {
		of := revision(test.all...)
		of.Status.Removals = &v1alpha1.HeldRemovals{Digest: "sha256:0123456789abcdef0123"}
		var got []string
		for _, one := range States(of) {
			got = append(got, one.Type)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOwed(t *testing.T) {
	ops := v1alpha1.ApprovalNotice{Name: "ops", URL: "https://ops.example.com"}
	waiting, decided := revision(planned, waits), revision(planned, approved)
	key := func(of *v1alpha1.InstanceRevision) string { return States(of)[0].Key }
	here, elsewhere := Address(waiting, ops.URL), Address(waiting, "https://other.example.com")
	soon, later := since.Add(time.Minute), since.Add(2*fresh)
	for name, test := range map[string]struct {
		of    *v1alpha1.InstanceRevision
		known *v1alpha1.ReceiverNotice
		now   time.Time
		want  int
	}{
		"waits, never told":             {waiting, nil, later, 1},
		"waits, told":                   {waiting, &v1alpha1.ReceiverNotice{Address: here, Told: []string{key(waiting)}}, later, 0},
		"waits, told elsewhere":         {waiting, &v1alpha1.ReceiverNotice{Address: elsewhere, Told: []string{key(waiting)}}, later, 1},
		"waits again":                   {waiting, &v1alpha1.ReceiverNotice{Address: here, Told: []string{"waiting-1"}}, later, 1},
		"decided, never told":           {decided, nil, soon, 1},
		"decided long ago, never told":  {decided, nil, later, 0},
		"decided long ago, never taken": {decided, &v1alpha1.ReceiverNotice{Address: here, Problem: "it is down"}, later, 1},
		"decided, told elsewhere":       {decided, &v1alpha1.ReceiverNotice{Address: elsewhere, Told: []string{key(decided)}}, soon, 0},
	} {
		of := test.of.DeepCopy()
		if test.known != nil {
			test.known.Receiver = "ops"
			of.Status.Notices = []v1alpha1.ReceiverNotice{{Receiver: "chat"}, *test.known}
		}
		if got := Owed(of, ops, test.now); len(got) != test.want {
			t.Errorf("%s: %v, want %d", name, got, test.want)
		}
	}
}

// TestTheLargestEventIsOne fills each text of a revision with what takes the most room in JSON.
func TestTheLargestEventIsOne(t *testing.T) {
	long := func(n int) string { return strings.Repeat("\x01", n) }
	of := revision(planned, approved, condition{v1alpha1.ConditionPruneApproved, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval})
	of.Name, of.Namespace, of.Spec.Instance.Name = strings.Repeat("a", 63), strings.Repeat("a", 63), strings.Repeat("a", 52)
	many := slices.Repeat([]string{long(4096)}, 50)
	of.Spec.ChangedBy = many
	of.Status.Removals = &v1alpha1.HeldRemovals{Digest: "sha256:0123456789abcdef0123", Count: 50, Objects: many}
	of.Status.Plan = &v1alpha1.PlanSummary{Permissions: &v1alpha1.PlannedPermissions{Gains: 50, Gained: many, MayGain: many, Unknown: long(4096)}}
	for _, state := range States(of) {
		state.Message = long(8 << 10)
		content, err := Event(of, state)
		if err != nil {
			t.Fatal(err)
		}
		var got event.Event
		if err := json.Unmarshal(content, &got); err != nil {
			t.Fatal(err)
		}
		var data Data
		if err := got.DataAs(&data); err != nil {
			t.Fatal(err)
		}
		if data.Permissions.Gains != 50 || len(data.Permissions.Gained) == 0 || len(data.Permissions.Gained) > maxLines || len(data.Message) != maxText {
			t.Errorf("%d gains, %d lines, %d bytes", data.Permissions.Gains, len(data.Permissions.Gained), len(data.Message))
		}
		if err := got.Validate(); err != nil || got.ID() != "u-"+state.Key {
			t.Errorf("id %q: %v", got.ID(), err)
		}
	}
}

func TestSender(t *testing.T) {
	var authorization string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		authorization = r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/endless":
			for { // until the client goes
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		case "/hangs":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/moved":
			http.Redirect(w, r, "/taken?hunter2", http.StatusTemporaryRedirect)
		case "/no":
			http.Error(w, "hunter2", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	trusted := Credentials{Token: "hunter2", CA: ca}
	for name, test := range map[string]struct {
		url  string
		with Credentials
		want string // of the error; "" for none
	}{
		"taken":                {server.URL, trusted, ""},
		"answers without end":  {server.URL + "/endless", trusted, ""},
		"refused":              {server.URL + "/no?hunter2", trusted, "it answered 403 Forbidden"},
		"leads elsewhere":      {server.URL + "/moved", trusted, "it answered 307, which leads elsewhere and is not followed"},
		"not trusted":          {server.URL + "/?hunter2", Credentials{}, "put its certificate into the key ca.crt of its Secret"},
		"authority of no use":  {server.URL, Credentials{CA: []byte("hunter2")}, "key ca.crt of its Secret: the CA holds no certificate in PEM"},
		"token by http":        {"http://127.0.0.1:1/", trusted, "sent by https only"},
		"token of two lines":   {server.URL, Credentials{Token: "hunter2\nX-Other: a", CA: ca}, "key token of its Secret is not a token"},
		"password in the url":  {"https://ann:hunter2@127.0.0.1:1/", Credentials{}, "its url has a user or a password"},
		"no url":               {"hunter2", Credentials{}, "its url is not an absolute one"},
		"a metadata service":   {"http://[fd00:ec2::254]/hunter2", Credentials{}, "a cloud's metadata service"},
		"nobody there":         {"http://127.0.0.1:1/hunter2", Credentials{}, "dial: connect: connection refused"},
		"no such host":         {"http://nowhere.invalid/hunter2", Credentials{}, "in its url"},
		"speaks another thing": {strings.Replace(server.URL, "https", "http", 1), Credentials{}, "it answered 400"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Sender{}).Send(t.Context(), test.url, test.with, []byte("{}"))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("what is secret is in the error: %v", err)
			}
			if test.want == "" && authorization != "Bearer hunter2" {
				t.Errorf("the token was %q", authorization)
			}
		})
	}
	sender := &Sender{Timeout: 300 * time.Millisecond}
	if err := sender.Send(t.Context(), server.URL+"/hangs", trusted, []byte("{}")); err != nil {
		t.Errorf("one that took the event and does not end: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sender.Send(ended, server.URL, trusted, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the manager ends: %v", err)
	}
}
