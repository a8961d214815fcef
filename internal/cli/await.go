// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/progress"
	"rukpak.io/rukpak/internal/cli/state"
)

// pollInterval is how often the API server is asked while somebody waits.
const pollInterval = 400 * time.Millisecond

// unseenPatience is how long a manager that runs may take to look at something new.
const unseenPatience = 5 * time.Second

// stuckPatience is how long it is waited for something that somebody has to
// mend: long enough that a controller has looked again, should it be mended.
const stuckPatience = 20 * time.Second

// defaultTimeout is that of everything that waits; it is the default progressDeadline.
const defaultTimeout = 10 * time.Minute

// await waits until the instance has reached the goal. Its error has the exit
// code that `help exit-codes` promises.
func (s *session) await(ctx context.Context, name string, g goal, timeout time.Duration, line *progress.Line) (verdict, error) {
	return s.awaitVerdict(ctx, name, g, timeout, line, func(instance *v1alpha1.BundleInstance, revision *v1alpha1.InstanceRevision) verdict {
		return judge(g, instance, revision)
	})
}

type judgement func(*v1alpha1.BundleInstance, *v1alpha1.InstanceRevision) verdict

func (s *session) awaitVerdict(ctx context.Context, name string, g goal, timeout time.Duration, line *progress.Line, decide judgement) (verdict, error) {
	began := time.Now()
	deadline, shown := began.Add(timeout), ""
	for first := true; ; first = false {
		told, err := s.look(ctx, name, g, decide)
		switch {
		case err != nil && (first || !passing(err)):
			return told, err
		case err != nil:
			told = verdict{title: name, wait: ExitTimeout, text: "the API server does not answer, trying again"}
		case told.done:
			return told, nil
		case told.code != 0:
			return told, s.blocked(told, told.code)
		case told.stuck && time.Since(began) >= stuckPatience:
			return told, s.blocked(told, ExitFailed)
		}
		if !time.Now().Before(deadline) {
			return told, s.blocked(told.after(shown, line), told.wait)
		}
		if told.unseen && time.Since(began) < unseenPatience {
			told.text = "waiting for the manager"
		}
		shown = told.String()
		line.Show("%s", shown)
		if err := sleep(ctx, pollInterval); err != nil {
			return told, err
		}
	}
}

// after is brief if the log has the rest already.
func (v verdict) after(shown string, line *progress.Line) verdict {
	if line.Kept() && shown == v.String() {
		v.text = strings.TrimPrefix(v.brief(), v.title+": ")
	}
	return v
}

func (s *session) look(ctx context.Context, name string, g goal, decide judgement) (verdict, error) {
	instance, err := s.instanceNamed(ctx, name)
	if g == goalDeleted && codeOf(err) == ExitNotFound {
		return verdict{done: true, title: name, text: "is deleted"}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	revision, err := s.newest(ctx, instance)
	if err != nil && codeOf(err) != ExitNotFound { // a revision that is gone by now is no more the newest
		return verdict{}, err
	}
	told := decide(instance, revision)
	if !told.done && told.code == 0 && !told.stuck {
		s.lookAtBundle(ctx, instance, &told)
	}
	return told, nil
}

// lookAtBundle finds out whether a bundle that is not ready ever will be.
func (s *session) lookAtBundle(ctx context.Context, instance *v1alpha1.BundleInstance, told *verdict) {
	ready := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonBundleNotReady || instance.Status.ObservedGeneration != instance.Generation {
		return
	}
	cluster, err := s.client()
	if err != nil {
		return
	}
	bundle := &v1alpha1.Bundle{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: instance.Namespace, Name: instance.Status.BundleName}, bundle); err != nil {
		return // the instance's own words must do
	}
	told.ends(state.OfBundle(bundle).Word)
}

// blocked is the error of a wait that ended without reaching its goal.
func (s *session) blocked(told verdict, code int) *problem {
	if code == ExitTimeout {
		return failf(code, "the time is up: %s", told).
			hintf("%s tells more; --timeout waits longer", s.command("describe %s", told.title))
	}
	found := failf(code, "%s", told)
	if told.suspended {
		return found.hintf("%s resumes it", s.command("update %s --suspend=false", told.title))
	}
	switch code {
	case ExitWaiting:
		if told.rollback != "" {
			return found.hintf("look with %s, decide with %s, or take the rollback back with %s", s.command("plan %s", told.title),
				s.command("approve %s", told.title), s.command("rollback %s --clear", told.rollback))
		}
		return found.hintf("look with %s, decide with %s", s.command("plan %s", told.title), s.command("approve %s", told.title))
	case ExitFailed, ExitDenied:
		return found.hintf("%s tells more", s.command("describe %s", told.title))
	}
	return found
}

// passing says of an error that it may be gone a moment later.
func passing(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// awaitReady waits until the instance is active and healthy, and says so.
func (s *session) awaitReady(ctx context.Context, instance string, timeout time.Duration) error {
	line := s.progress()
	defer line.Close()
	reached, err := s.await(ctx, instance, goalReady, timeout, line)
	if err != nil {
		return err
	}
	line.Done("%s is active and healthy", reached.title)
	return nil
}
