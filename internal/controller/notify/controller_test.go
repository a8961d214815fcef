// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

const (
	isTrue  = metav1.ConditionTrue
	isFalse = metav1.ConditionFalse
)

func at(name, url string) v1alpha1.ApprovalNotice {
	return v1alpha1.ApprovalNotice{Name: name, URL: url}
}

// dead gives a url at which nobody listens.
func dead(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it is to be closed
	return "http://" + listener.Addr().String()
}

func TestEachStateIsToldOnceAlsoAfterARestart(t *testing.T) {
	ops, chat := newReceiver(t, false), newReceiver(t, false)
	s := newStage(t, at("ops", ops.URL), at("chat", chat.URL)).start()
	s.waiting("app-1")
	s.tells(ops, "app-1", "waiting")
	s.notified("app-1", isTrue, "told ops, chat: waiting")
	s.set("app-1", v1alpha1.ConditionApproved, isTrue, v1alpha1.ReasonApproved)
	s.notified("app-1", isTrue, "told ops, chat: approved")
	s.change("app-1", func(of *v1alpha1.InstanceRevision) {
		of.Status.Removals = &v1alpha1.HeldRemovals{Digest: digest, Count: 1, Objects: []string{"Namespace team"}}
	})
	s.set("app-1", v1alpha1.ConditionPruneApproved, isFalse, v1alpha1.ReasonWaitingForApproval)
	s.notified("app-1", isTrue, "told ops, chat: approved, pruneWaiting")
	s.change("app-1", func(of *v1alpha1.InstanceRevision) { of.Status.Removals = nil })
	s.set("app-1", v1alpha1.ConditionPruneApproved, isTrue, v1alpha1.ReasonApproved)
	before := s.notified("app-1", isTrue, "told ops, chat: approved")

	s.start()
	s.waiting("app-2")
	s.notified("app-2", isTrue, "told ops, chat: waiting")
	s.set("app-2", v1alpha1.ConditionDenied, isTrue, v1alpha1.ReasonDenied)
	s.notified("app-2", isTrue, "told ops, chat: denied")
	if after := s.get("app-1"); after.ResourceVersion != before.ResourceVersion {
		t.Error("a restart wrote a revision of which everything was told")
	}
	for _, receiver := range []*receiver{ops, chat} {
		s.tells(receiver, "app-1", "waiting", "approved", "pruneWaiting")
		s.tells(receiver, "app-2", "waiting", "denied")
		ids := receiver.ids()
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 5 {
			t.Errorf("the ids are %q", ids)
		}
	}
}

func TestADeadReceiverDelaysNoOtherAndIsLeftForAnotherURL(t *testing.T) {
	ops, chat := newReceiver(t, false), newReceiver(t, false)
	s := newStage(t, at("ops", ops.URL), at("chat", dead(t))).start()
	s.waiting("app-1")
	s.waiting("old-1")
	s.set("old-1", v1alpha1.ConditionApproved, isTrue, v1alpha1.ReasonApproved)
	for _, name := range []string{"app-1", "old-1"} {
		s.notified(name, isFalse, "chat: dial: connect: connection refused; it is tried again")
	}
	s.tells(ops, "app-1", "waiting")
	// The class names one that lives: it is told the present state.
	s.receivers(at("ops", ops.URL), at("chat", chat.URL+"/a"))
	s.notified("app-1", isTrue, "told ops, chat: waiting")
	s.notified("old-1", isTrue, "told ops, chat: approved")
	s.tells(chat, "app-1", "waiting")
	s.tells(chat, "old-1", "approved")
	// Another url is told again what waits, and not what was decided.
	s.receivers(at("ops", ops.URL), at("chat", chat.URL+"/b"))
	s.tells(chat, "app-1", "waiting", "waiting")
	s.set("app-1", v1alpha1.ConditionApproved, isTrue, v1alpha1.ReasonApproved)
	s.tells(chat, "app-1", "waiting", "waiting", "approved")
	s.tells(chat, "old-1", "approved")
	s.tells(ops, "app-1", "waiting", "approved")
	if ids := chat.ids(); ids[0] != ids[2] && ids[1] != ids[2] {
		t.Errorf("the same state has other ids: %q", ids)
	}
	// Nobody is told any more.
	s.receivers()
	s.eventually("no trace is left", func() error {
		of := s.get("app-1")
		if len(of.Status.Notices) > 0 || meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionNotified) != nil {
			return fmt.Errorf("%+v", of.Status)
		}
		return nil
	})
}

// mute is a server that answers at the end, if ever.
func mute(t *testing.T, end <-chan struct{}) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestASlowReceiverKeepsOnlyItsOwnLane(t *testing.T) {
	ops := newReceiver(t, false)
	end := make(chan struct{})
	slow := mute(t, end)
	s := newStage(t, at("slow", slow.URL), at("ops", ops.URL)).start()
	const revisions = 3 * workers / 2
	for i := range revisions {
		s.waiting(fmt.Sprintf("app-%d", i))
	}
	for i := range revisions {
		s.tells(ops, fmt.Sprintf("app-%d", i), "waiting")
	}
	close(end)
	for i := range revisions {
		s.notified(fmt.Sprintf("app-%d", i), isTrue, "told slow, ops: waiting")
	}
}

func TestOneThatNeverAnswersIsGivenUpAndSaid(t *testing.T) {
	s := newStage(t, at("slow", mute(t, nil).URL))
	s.timeout = 100 * time.Millisecond
	s.start()
	s.waiting("app-1")
	s.notified("app-1", isFalse, "slow: no answer within 100ms; it is tried again")
}

func TestWhatIsRefusedIsSentAgainWithTheSameID(t *testing.T) {
	ops := newReceiver(t, false)
	ops.answers = []int{500, 429}
	s := newStage(t, at("ops", ops.URL)).start()
	s.waiting("app-1")
	s.notified("app-1", isTrue, "told ops: waiting")
	s.tells(ops, "app-1", "waiting", "waiting", "waiting")
	if ids := slices.Compact(ops.ids()); len(ids) != 1 {
		t.Errorf("ids %q", ids)
	}
}

func TestRedirectsAreNotFollowedAndAnswersNotShown(t *testing.T) {
	ops := newReceiver(t, false)
	ops.answers = slices.Repeat([]int{302}, 10_000)
	s := newStage(t, at("ops", ops.URL)).start()
	s.waiting("app-1")
	of := s.notified("app-1", isFalse, "ops: it answered 302, which leads elsewhere and is not followed: name the url at which events are taken; it is tried again")
	if text, _ := json.Marshal(of.Status); strings.Contains(string(text), "hunter2") {
		t.Errorf("%s", text)
	}
}

func TestAddressesOfMetadataServicesAreRefused(t *testing.T) {
	s := newStage(t, at("ops", "http://169.254.169.254/latest")).start()
	s.waiting("app-1")
	s.notified("app-1", isFalse, "ops: it is at the address 169.254.169.254, which is link-local or that of a cloud's metadata service: no content is fetched from there; it is tried again")
}

func TestATokenGoesByHTTPSOnly(t *testing.T) {
	plain, secure := newReceiver(t, false), newReceiver(t, true)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	with := func(receiver v1alpha1.ApprovalNotice, secret string) v1alpha1.ApprovalNotice {
		receiver.SecretName = secret
		return receiver
	}
	s := newStage(t, with(at("ops", plain.URL), "ops"), with(at("chat", secure.URL), "chat")).start()
	s.secret("ops", map[string]string{"token": "hunter2"})
	s.waiting("app-1")
	const first = "ops: its Secret has a token, which is sent by https only: give it a url with https, or take the key token away; "
	s.notified("app-1", isFalse, first+fmt.Sprintf("chat: there is no Secret %q in the namespace %q; it is tried again", "chat", s.name))
	s.secret("chat", map[string]string{"token": "hunter2\n", "ca.crt": authority})
	s.notified("app-1", isFalse, first+"it is tried again")
	s.tells(secure, "app-1", "waiting")
	s.receivers(with(at("ops", secure.URL+"/ops"), "chat"), with(at("chat", secure.URL), "chat"))
	of := s.notified("app-1", isTrue, "told ops, chat: waiting")
	if len(plain.ids()) > 0 {
		t.Error("something was sent by http")
	}
	if secure.tokens[0] != "Bearer hunter2" {
		t.Errorf("the token was %q", secure.tokens)
	}
	if text, _ := json.Marshal(of); strings.Contains(string(text), "hunter2") || strings.Contains(string(text), secure.URL) {
		t.Errorf("what is secret is in the status: %s", text)
	}
}

func TestWhatNobodyIsToLookAtIsNotTold(t *testing.T) {
	ops := newReceiver(t, false)
	s := newStage(t, at("ops", ops.URL))
	s.waiting("old-1")
	s.set("old-1", v1alpha1.ConditionSuperseded, isTrue, v1alpha1.ReasonSuperseded)
	s.waiting("old-2")
	s.set("old-2", v1alpha1.ConditionActive, isFalse, v1alpha1.ReasonReplaced)
	s.waiting("old-3") // decided long before the class named anybody
	s.change("old-3", func(of *v1alpha1.InstanceRevision) {
		approved := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionApproved)
		approved.Status, approved.LastTransitionTime = isTrue, metav1.NewTime(time.Now().Add(-2*time.Hour))
	})
	before := s.get("old-3")
	s.start()
	s.waiting("app-1")
	s.notified("app-1", isTrue, "told ops: waiting")
	if got := ops.ids(); len(got) != 1 {
		t.Errorf("%q was told", got)
	}
	if after := s.get("old-3"); after.ResourceVersion != before.ResourceVersion {
		t.Error("a revision was written of which nobody was told")
	}
}
