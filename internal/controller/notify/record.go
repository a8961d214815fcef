// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/notify"
)

const (
	maxProblem = 512 // bytes, as the schema has it
	maxTold    = 4
	tries      = 10 // to write against other writers
)

// outcome is what became of telling one receiver.
type outcome struct {
	receiver v1alpha1.ApprovalNotice
	told     []string
	problem  string
}

// credentials are those of a receiver's Secret.
func (c *Controller) credentials(ctx context.Context, of v1alpha1.ApprovalNotice) (out notify.Credentials, err error) {
	if of.SecretName == "" {
		return out, nil
	}
	found := &corev1.Secret{}
	err = c.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: of.SecretName}, found)
	if apierrors.IsNotFound(err) {
		return out, notify.Misconfigured(fmt.Sprintf("there is no Secret %q in the namespace %q", of.SecretName, c.Namespace))
	}
	if err != nil {
		return out, notify.Misconfigured(fmt.Sprintf("Secret %q in the namespace %q cannot be read: %s", of.SecretName, c.Namespace, apierrors.ReasonForError(err)))
	}
	out.Token, out.CA = string(bytes.TrimSpace(found.Data["token"])), found.Data["ca.crt"]
	if out.Token == "" && len(out.CA) == 0 {
		return out, notify.Misconfigured(fmt.Sprintf("Secret %q in the namespace %q has neither the key token nor the key ca.crt", of.SecretName, c.Namespace))
	}
	return out, nil
}

// record writes what was told into the revision, over whatever others write meanwhile: it was sent, and is not to be sent
// again.
func (c *Controller) record(ctx context.Context, of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice, done *outcome) error {
	for try := 1; ; try++ {
		before := of.DeepCopy()
		if done != nil {
			note(of, *done)
		}
		order(of, all)
		err := status.Patch(ctx, c.Client, of, before)
		if !apierrors.IsConflict(err) || try == tries {
			return err
		}
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(of), of); err != nil {
			return err
		}
	}
}

// note puts an outcome into the entry of its receiver.
func note(of *v1alpha1.InstanceRevision, done outcome) {
	entry := notify.Find(of.Status.Notices, done.receiver.Name)
	if entry == nil {
		of.Status.Notices = append(of.Status.Notices, v1alpha1.ReceiverNotice{Receiver: done.receiver.Name})
		entry = &of.Status.Notices[len(of.Status.Notices)-1]
	}
	states := notify.States(of)
	is := func(key string) *notify.State {
		if at := slices.IndexFunc(states, func(s notify.State) bool { return s.Key == key }); at >= 0 {
			return &states[at]
		}
		return nil
	}
	address := notify.Address(of, done.receiver.URL)
	moved := entry.Address != address
	entry.Told = slices.DeleteFunc(slices.Clone(entry.Told), func(key string) bool {
		state := is(key)
		return state == nil && len(states) > 0 || moved && state != nil && state.Asks() || slices.Contains(done.told, key)
	})
	entry.Told = append(entry.Told, done.told...)
	entry.Told = entry.Told[max(0, len(entry.Told)-maxTold):]
	entry.Address, entry.Problem = address, status.Cut(done.problem, maxProblem)
}

// order makes notices and condition fit the receivers and the state that there are now.
func order(of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice) {
	notices, condition := ordered(of, all)
	of.Status.Notices = notices
	if condition == nil {
		meta.RemoveStatusCondition(&of.Status.Conditions, v1alpha1.ConditionNotified)
		return
	}
	status.Conditions{List: &of.Status.Conditions, Generation: of.Generation}.Set(condition.Type, condition.Status, condition.Reason, condition.Message)
}

// inOrder tells whether there is nothing to put in order, which is so for nearly every revision at nearly every time.
func inOrder(of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice) bool {
	present := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionNotified)
	if len(of.Status.Notices) == 0 && present == nil {
		return true
	}
	notices, condition := ordered(of, all)
	if (present == nil) != (condition == nil) || !equality.Semantic.DeepEqual(notices, of.Status.Notices) {
		return false
	}
	return present == nil || present.Status == condition.Status && present.Reason == condition.Reason && present.Message == status.OneLine(condition.Message)
}

func ordered(of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice) ([]v1alpha1.ReceiverNotice, *metav1.Condition) {
	present := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionNotified)
	var notices []v1alpha1.ReceiverNotice
	for _, entry := range of.Status.Notices {
		if slices.ContainsFunc(all, func(r v1alpha1.ApprovalNotice) bool { return r.Name == entry.Receiver }) {
			notices = append(notices, *entry.DeepCopy())
		}
	}
	now := standing(of, all, notices)
	states := notify.States(of)
	switch {
	case len(now.failed) > 0:
		return notices, &metav1.Condition{Type: v1alpha1.ConditionNotified, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotifyFailed,
			Message: strings.Join(now.failed, "; ") + "; it is tried again"}
	case now.pending || len(states) == 0 && present != nil && present.Status == metav1.ConditionTrue && len(now.told) > 0:
		return notices, present
	case len(now.told) == 0 || len(states) == 0:
		return notices, nil
	}
	return notices, &metav1.Condition{Type: v1alpha1.ConditionNotified, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNotified,
		Message: "told " + strings.Join(now.told, ", ") + ": " + notify.Say(states)}
}

// stands is how far the receivers are: those that were told all, those that could not be, and whether one is being told.
type stands struct {
	told, failed []string
	pending      bool
}

// standing looks at each receiver. A notice of one that was told all has no problem any more.
func standing(of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice, notices []v1alpha1.ReceiverNotice) (s stands) {
	for _, receiver := range all {
		entry := notify.Find(notices, receiver.Name)
		switch owed := notify.Owed(of, receiver, time.Now()); {
		case len(owed) == 0 && entry != nil:
			entry.Problem = ""
			s.told = append(s.told, receiver.Name)
		case len(owed) == 0:
		case entry != nil && entry.Problem != "":
			s.failed = append(s.failed, receiver.Name+": "+entry.Problem)
		default:
			s.pending = true
		}
	}
	return s
}
