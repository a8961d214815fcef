// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

// Times of Serve.
const (
	usualWorkers = 4
	pollTime     = 25 * time.Second // a request for work is held
	pollSlack    = 20 * time.Second // and may take longer than that
	firstPause   = time.Second      // before what failed is tried again, doubled each time
	longestPause = 15 * time.Second //
	endTime      = 20 * time.Second // jobs may go on after the end was asked for
	stuckTime    = 30 * time.Second // a provisioner may take to notice that its context has ended
	sendTime     = 2 * time.Minute  // a result is tried to be sent
)

// ServeOptions are what Serve can be told. The zero value is good.
type ServeOptions struct {
	Workers       int          // renderings at the same time; 4 if it is 0
	HealthAddress string       // of /healthz and /readyz; "" or "0" for none
	Dir           string       // for content while it is rendered; "" for a temporary one
	Log           *slog.Logger // nil for none
}

// Serve serves the ID of a provisioner for the RukPak of a cluster until ctx ends: it asks for jobs, as many as there are
// workers, and answers them. What a provisioner panics with becomes an error of its job. After ctx has ended no job is
// asked for, and those at hand may go on for 20 seconds; then they are given back. See Main for the rights that it needs.
//
// An error means that it could not begin, or that this ID cannot be served by anybody: the manager does so itself. That
// the cluster cannot be reached, or refuses, is written to the log and tried again.
func Serve(ctx context.Context, config *rest.Config, p Provisioner, options ServeOptions) (err error) {
	if options.Workers <= 0 {
		options.Workers = usualWorkers
	}
	if options.Log == nil {
		options.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	api, err := newWorkClient(config, p.ID())
	if err != nil {
		return err
	}
	if options.Dir == "" {
		if options.Dir, err = os.MkdirTemp("", "provisioner-"); err != nil {
			return fmt.Errorf("make a folder for content: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(options.Dir)) }()
	}
	s := &server{provisioner: p, api: api, trees: newTrees(options.Dir), log: options.Log.With("provisioner", p.ID())}
	stopHealth, err := s.serveHealth(ctx, options.HealthAddress)
	if err != nil {
		return err
	}
	defer stopHealth()
	s.log.Info("serving", "workers", options.Workers, "cluster", api.base)
	return s.run(ctx, options.Workers)
}

// server asks for jobs and answers them.
type server struct {
	provisioner Provisioner
	api         *workClient
	trees       *trees
	log         *slog.Logger

	asked atomic.Int64 // when a request for work was last answered, in nanoseconds since 1970
	busy  atomic.Int64 // jobs at hand
	stuck atomic.Int64 // calls that did not end with their context
}

var errEnding = errors.New("this process ends")

func (s *server) run(ctx context.Context, workers int) error {
	working, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(errEnding)
	var all sync.WaitGroup
	places := make(chan struct{}, workers)
	pause := firstPause
	var told trouble
	for {
		select {
		case <-ctx.Done():
			return s.drain(&all, end)
		case places <- struct{}{}:
		}
		job, err := s.api.take(ctx)
		if err == nil {
			s.asked.Store(time.Now().UnixNano())
			pause = firstPause
			told.over(s.log)
		}
		if job != nil {
			all.Go(func() {
				defer func() { <-places }()
				s.work(working, job)
			})
			continue
		}
		<-places
		switch {
		case err == nil || ctx.Err() != nil:
		case apierrors.IsConflict(err) || apierrors.IsBadRequest(err):
			return errors.Join(err, s.drain(&all, end)) // no other try would end otherwise
		default:
			told.tell(s.log, err)
			sleep(ctx, max(pause, retryAfter(err)))
			pause = min(2*pause, longestPause)
		}
	}
}

// drain lets jobs go on for a while, and then gives them back.
func (s *server) drain(all *sync.WaitGroup, end context.CancelCauseFunc) error {
	s.log.Info("ending: no more jobs are taken")
	timer := time.AfterFunc(endTime, func() { end(errEnding) })
	defer timer.Stop()
	all.Wait()
	return nil
}

// trouble says once what goes on for a while.
type trouble struct {
	text string
	when time.Time
}

func (t *trouble) tell(log *slog.Logger, err error) {
	if text := err.Error(); text != t.text || time.Since(t.when) > time.Minute {
		t.text, t.when = text, time.Now()
		log.Warn("no work can be asked for; it is tried again", "error", text)
	}
}

func (t *trouble) over(log *slog.Logger) {
	if t.text != "" {
		t.text = ""
		log.Info("work can be asked for again")
	}
}

func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// sleep is a pause, a little longer or shorter each time, so that those who were sent away together do not come together.
func sleep(ctx context.Context, pause time.Duration) {
	pause = pause/2 + rand.N(pause) //nolint:gosec // no secret
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// work does one job, and says what became of it.
func (s *server) work(ctx context.Context, job *contentv1.Job) {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	began := time.Now()
	log := s.log.With("job", string(job.Kind))
	if job.Instance != nil {
		log = log.With("instance", job.Instance.Namespace+"/"+job.Instance.Name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.keep(ctx, cancel, job)
	defer s.watch(ctx)()
	result := s.answer(ctx, log, job)
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, errEnding):
		result = contentv1.Result{HandedBack: true}
	default:
		log.Info("the job is no longer ours", "why", cause.Error())
		return
	}
	err := s.send(context.WithoutCancel(ctx), job.ID, result)
	log.Info("job done", "took", time.Since(began).String(), "faults", len(result.Faults), "error", result.Error, "handedBack", result.HandedBack)
	if err != nil {
		log.Error("the result was not taken", "error", err)
	}
}

// keep says that the job is still worked on, and ends it when it is no longer ours.
func (s *server) keep(ctx context.Context, withdraw context.CancelCauseFunc, job *contentv1.Job) {
	pause := max(time.Duration(job.LeaseSeconds)*time.Second/3, 100*time.Millisecond)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := s.api.renew(ctx, job.ID); apierrors.IsGone(err) {
			withdraw(err)
			return
		}
	}
}

// watch notes when a call does not end with its context, for as long as it does not.
func (s *server) watch(ctx context.Context) (done func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		select {
		case <-ended:
		case <-time.After(stuckTime):
			s.log.Error("the provisioner goes on though its context has ended; this process is not healthy until it stops")
			s.stuck.Add(1)
			<-ended
			s.stuck.Add(-1)
		}
	}()
	return func() { close(ended) }
}

// send sends a result, again if that failed in passing.
func (s *server) send(ctx context.Context, job string, result contentv1.Result) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	for pause := firstPause / 4; ; pause = min(2*pause, longestPause) {
		err := s.api.finish(ctx, job, result)
		if err == nil || apierrors.IsGone(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || ctx.Err() != nil {
			return err
		}
		_ = s.api.renew(ctx, job) // so that it stays ours
		sleep(ctx, max(pause, retryAfter(err)))
	}
}
