// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

// Worker is one who serves a provisioner: its ID, and his name as a user of the cluster, of which both he was authorised
// for by whoever calls the broker.
type Worker struct {
	ID   string
	User string
}

// Take waits for a job until ctx ends. It is nil if there is none then.
func (b *Broker) Take(ctx context.Context, w Worker) (*contentv1.Job, error) {
	if slices.Contains(b.options.Own, w.ID) {
		return nil, &OwnError{w.ID}
	}
	b.mu.Lock()
	defer b.unlock()
	crew := b.crewOf(w.ID)
	b.alive(crew)
	crew.polls++
	defer func() {
		crew.polls--
		crew.seen = b.now()
	}()
	for {
		if b.stopped {
			return nil, &StoppingError{}
		}
		if ctx.Err() != nil {
			return nil, nil //nolint:nilnil // there is none
		}
		if next := crew.next(); next != nil {
			return b.give(crew, next, w), nil
		}
		queued := crew.queued
		b.unlock()
		select {
		case <-queued:
		case <-ctx.Done():
		case <-b.stopping:
		}
		b.mu.Lock()
	}
}

func (b *Broker) give(c *crew, e *errand, w Worker) *contentv1.Job {
	e.state, e.id, e.who = taken, rand.Text(), w.User
	e.begun = b.now()
	e.until = e.begun.Add(b.options.Lease)
	c.taken[e.id] = e
	job := e.job
	job.TypeMeta = metav1.TypeMeta{Kind: "Job", APIVersion: contentv1.GroupVersion.String()}
	job.ID, job.LeaseSeconds = e.id, max(1, int(b.options.Lease/time.Second))
	return &job
}

// mine finds a job of a worker, whose sign of life this is.
func (b *Broker) mine(w Worker, job string) (*crew, *errand, error) {
	crew := b.crews[w.ID]
	if crew == nil || crew.taken[job] == nil || crew.taken[job].who != w.User {
		return nil, nil, &GoneError{job}
	}
	found := crew.taken[job]
	b.alive(crew)
	found.until = b.now().Add(b.options.Lease)
	return crew, found, nil
}

// Renew says that a worker is still at a job.
func (b *Broker) Renew(w Worker, job string) error {
	b.mu.Lock()
	defer b.unlock()
	_, _, err := b.mine(w, job)
	return err
}

// Content gives the tree of a job; nil if it has none.
func (b *Broker) Content(w Worker, job string) (fs.FS, error) {
	b.mu.Lock()
	defer b.unlock()
	_, found, err := b.mine(w, job)
	if err != nil {
		return nil, err
	}
	return found.content, nil
}

// Reader gives what reads the cluster for a job; nil if it has none.
func (b *Broker) Reader(w Worker, job string) (provisioner.Reader, error) {
	b.mu.Lock()
	defer b.unlock()
	_, found, err := b.mine(w, job)
	if err != nil {
		return nil, err
	}
	return found.reader, nil
}

// Finish takes the result of a job, a contentv1.Result in JSON of at most MaxResult bytes. A *ContractError says what is
// wrong with it: the job has failed then, as with any other error. A *BusyError asks for it to be sent again.
func (b *Broker) Finish(w Worker, job string, body []byte) error {
	if err := b.Renew(w, job); err != nil {
		return err // before the work of decoding
	}
	got, wrong := decode(body)
	b.mu.Lock()
	defer b.unlock()
	crew, found, err := b.mine(w, job)
	if err != nil {
		return err
	}
	if wrong == nil && got.err == nil && !got.handedBack {
		wrong = fits(found.job.Kind, got.result)
	}
	switch {
	case wrong != nil:
		err = &ContractError{ID: w.ID, Err: wrong}
		b.end(crew, found, nil, err)
	case got.handedBack:
		crew.remove(found)
		found.state = queued
		crew.putFirst(found)
	case got.err != nil:
		b.end(crew, found, nil, got.err)
	case b.held+int64(len(body)) > maxHeld:
		return &BusyError{}
	case found.job.Kind == contentv1.JobValidate:
		b.end(crew, found, nil, nil)
	default:
		b.end(crew, found, body, nil)
	}
	return err
}

func fits(kind contentv1.JobKind, result provisioner.Result) error {
	has := len(result.Phases) > 0 || result.Nothing
	switch {
	case kind == contentv1.JobValidate && has:
		return errors.New("the job was to validate, and it has objects, or says that there are none")
	case kind == contentv1.JobRender && !has:
		return errors.New("there are 0 objects, and nothing is not true: to have none is an error unless it is meant")
	}
	return nil
}

// Fail ends a job whose result could not be read.
func (b *Broker) Fail(w Worker, job string, reason error) error {
	b.mu.Lock()
	defer b.unlock()
	crew, found, err := b.mine(w, job)
	if err != nil {
		return err
	}
	err = &ContractError{ID: w.ID, Err: reason}
	b.end(crew, found, nil, err)
	return err
}

// end notes an answer, and tells who asked.
func (b *Broker) end(c *crew, e *errand, body []byte, err error) {
	c.remove(e)
	e.state, e.body, e.err, e.ended, e.used, e.lost = done, body, err, b.now(), false, 0
	e.content, e.reader = nil, nil
	b.held += int64(len(body))
	e.failures++
	if final(err) {
		e.failures, e.last = 0, nil
	}
	if e.key.parameters != "" {
		b.change(c.id)
	} else {
		b.wakeInstance(e.key.instance)
	}
}

// tick looks at all that time has ended.
func (b *Broker) tick() {
	b.mu.Lock()
	defer b.unlock()
	now := b.now()
	for _, c := range b.crews {
		for _, e := range c.taken {
			b.overdue(c, e, now)
		}
		switch served := b.served(c); {
		case c.present && !served:
			b.gone(c)
		case !served && c.unsaid && !b.starting():
			b.tellAll(c)
		case !served && len(c.waiting) == 0 && !c.unsaid:
			delete(b.crews, c.id)
		}
	}
	for _, e := range b.errands {
		if e.state == done && now.Sub(e.ended) > e.keep() {
			b.drop(e)
		}
	}
}

// overdue ends what takes too long, and gives to another what somebody died with.
func (b *Broker) overdue(c *crew, e *errand, now time.Time) {
	switch {
	case now.Sub(e.begun) > b.options.Longest:
		b.end(c, e, nil, fmt.Errorf("the provisioner %q did not finish within %s", c.id, b.options.Longest))
	case now.After(e.until):
		c.remove(e)
		e.lost++
		b.options.Log.Info("a process took a job and gave no sign of life", "provisioner", c.id, "instance", e.key.instance, "times", e.lost)
		if e.lost >= maxLost {
			b.end(c, e, nil, fmt.Errorf("%d processes that serve the provisioner %q ended, or stood still, while they were at it: see its logs", e.lost, c.id))
			return
		}
		e.state = queued
		c.putFirst(e)
	}
}

// keep says for how long an answer is remembered.
func (e *errand) keep() time.Duration {
	switch {
	case e.used:
		return keepTaken
	case e.err != nil || e.job.Kind == contentv1.JobValidate:
		return keepFault
	}
	return keepResult
}
