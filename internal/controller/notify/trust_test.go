// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestAReceiverThatIsNotTrustedSaysWhatToDo(t *testing.T) {
	secure := newReceiver(t, true)
	s := newStage(t, at("ops", secure.URL)).start()
	s.waiting("app-1")
	s.notified("app-1", isFalse, "ops: tls: failed to verify certificate: x509: certificate signed by unknown authority; if its authority is private, put its certificate into the key ca.crt of its Secret; it is tried again")
	if got := secure.ids(); len(got) != 0 {
		t.Errorf("%q was sent to who is not trusted", got)
	}
}

func TestARevisionThatIsDeletedIsToldOfNoMore(t *testing.T) {
	ops, chat := newReceiver(t, false), newReceiver(t, false)
	s := newStage(t, at("ops", dead(t))).start()
	of := s.waiting("app-1")
	s.waiting("app-2")
	s.notified("app-1", isFalse, "ops: dial: connect: connection refused; it is tried again")
	s.must(client.IgnoreNotFound(s.Delete(t.Context(), of)))
	s.receivers(at("ops", ops.URL), v1alpha1.ApprovalNotice{Name: "chat", URL: chat.URL})
	s.notified("app-2", isTrue, "told ops, chat: waiting")
	for _, one := range []*receiver{ops, chat} {
		s.tells(one, "app-2", "waiting")
		s.tells(one, "app-1")
	}
}
