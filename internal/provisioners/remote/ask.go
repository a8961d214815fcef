// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

// remote is the provisioner of an ID, as the controllers see it.
type remote struct {
	broker *Broker
	id     string
}

var _ provisioner.Placed = remote{}

// ID gives the ID.
func (r remote) ID() string { return r.id }

// UsesOrigins is true: what a stranger's provisioner looks at is not known.
func (remote) UsesOrigins(json.RawMessage, json.RawMessage) bool { return true }

// Validate has the parameters checked. Content is not looked at: Render has it checked as well. The error may be a
// *PendingError or a *NobodyError.
func (r remote) Validate(ctx context.Context, content fs.FS, parameters json.RawMessage) error {
	if content != nil {
		return ctx.Err()
	}
	job := contentv1.Job{Kind: contentv1.JobValidate, Parameters: parameters}
	sum, err := sumOf(job, "")
	if err != nil {
		return err
	}
	_, err = r.broker.ask(ctx, &errand{key: key{id: r.id, parameters: sum}, sum: sum, job: job})
	return err
}

// Render has the parameters, the content and the configuration checked, and the content rendered. The error may be a
// *PendingError or a *NobodyError.
func (r remote) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	tree, known := req.Content.(interface{ Digest() digest.Digest })
	if !known {
		return provisioner.Result{}, fmt.Errorf("a %T has no digest, by which a provisioner outside of the manager could know the content", req.Content)
	}
	job := contentv1.Job{
		Kind: contentv1.JobRender, Parameters: req.Parameters, Config: req.Config, Content: tree.Digest().String(),
		Instance: &contentv1.InstanceName{Namespace: req.Instance.Namespace, Name: req.Instance.Name},
		Revision: req.Revision, Upgrade: req.Upgrade, Reads: req.Reader != nil,
		Cluster: &contentv1.ClusterFacts{Version: req.Cluster.Version, APIs: req.Cluster.APIs},
	}
	for _, origin := range req.Origins {
		job.Origins = append(job.Origins, contentv1.Origin{Path: origin.Path, Kind: origin.Kind, Ref: origin.Ref})
	}
	sum, err := sumOf(job, readerOf(req.Reader))
	if err != nil {
		return provisioner.Result{}, err
	}
	return r.broker.ask(ctx, &errand{key: key{id: r.id, instance: req.Instance}, sum: sum, job: job, content: req.Content, reader: req.Reader})
}

// sumOf covers what an answer depends on, as far as it is known before.
func sumOf(job contentv1.Job, reader string) (string, error) {
	encoded, err := json.Marshal(job)
	if err != nil {
		return "", fmt.Errorf("encode the request: %w", err)
	}
	sum := sha256.Sum256(append(encoded, reader...))
	return string(sum[:]), nil
}

// readerOf tells as whom a reader reads, if it says so.
func readerOf(reader provisioner.Reader) string {
	if named, ok := reader.(fmt.Stringer); ok {
		return named.String()
	}
	return ""
}

// key is who asks: an instance, or a class by its parameters.
type key struct {
	id         string
	instance   types.NamespacedName
	parameters string
}

type state int

const (
	queued state = iota
	taken
	done
)

// errand is a job, from the question to the answer.
type errand struct {
	key     key
	sum     string // of what the answer depends on
	job     contentv1.Job
	content fs.FS
	reader  provisioner.Reader

	state state
	id    string    // of the job, as whoever took it knows it
	who   string    // took it
	until time.Time // it is his without a sign of life
	begun time.Time // he took it
	lost  int       // processes that died with it

	body     []byte // of the result, if err is nil
	err      error
	ended    time.Time
	used     bool // the result was taken
	failures int
	last     error // of the try before this one, which is told until there is another answer
}

// final says that an error stays until the input changes.
func final(err error) bool { return err == nil || provisioner.IsInputError(err) }

// dueAt is when what failed may be tried again.
func (e *errand) dueAt() time.Time {
	pause := firstPause << min(e.failures-1, 10)
	return e.ended.Add(min(pause, maxPause))
}

// ask gives the answer to what is asked, if there is one, and else has it worked on.
func (b *Broker) ask(ctx context.Context, asked *errand) (provisioner.Result, error) {
	if err := ctx.Err(); err != nil {
		return provisioner.Result{}, err
	}
	body, err := b.answer(asked)
	if err != nil || asked.job.Kind == contentv1.JobValidate {
		return provisioner.Result{}, err
	}
	decoded, err := decode(body)
	if err != nil {
		return provisioner.Result{}, &ContractError{ID: asked.key.id, Err: err} // it was decoded before
	}
	return decoded.result, nil
}

func (b *Broker) answer(asked *errand) ([]byte, error) {
	b.mu.Lock()
	defer b.unlock()
	found := b.errands[asked.key]
	if found != nil && found.sum != asked.sum {
		b.drop(found)
		found = nil
	}
	if found != nil && found.state == done && (final(found.err) || b.now().Before(found.dueAt())) {
		return b.use(found)
	}
	crew := b.crewOf(asked.key.id)
	if !b.served(crew) {
		return nil, b.unserved(crew, asked, found)
	}
	switch {
	case found == nil && len(crew.queue) >= maxJobs:
		return nil, fmt.Errorf("%d jobs wait for the provisioner %q already", maxJobs, crew.id)
	case found == nil:
		b.errands[asked.key], found = asked, asked
		crew.put(asked)
	case found.state == done: // it failed, and is tried again
		found.content, found.reader = asked.content, asked.reader
		found.state, found.last = queued, found.err
		crew.put(found)
	}
	if found.last != nil {
		return nil, found.last
	}
	return nil, &PendingError{crew.id}
}

// use gives an answer. A result is large, and not needed twice; but whoever takes it may lose a race and ask again.
func (b *Broker) use(found *errand) ([]byte, error) {
	if found.err != nil || found.job.Kind == contentv1.JobValidate {
		return nil, found.err
	}
	if len(found.body) > keepSmall {
		b.drop(found)
	} else if !found.used {
		found.used, found.ended = true, b.now()
	}
	return found.body, nil
}

// unserved remembers who is to be told when somebody serves the provisioner.
func (b *Broker) unserved(c *crew, asked, found *errand) error {
	if found != nil {
		b.drop(found)
	}
	if asked.job.Kind == contentv1.JobRender {
		c.waiting[asked.key.instance] = true
	}
	if b.starting() {
		c.unsaid = true
		return &PendingError{c.id}
	}
	return &NobodyError{ID: c.id, Own: b.options.Own}
}

// drop forgets an errand. Whoever is at it is told so with his next sign of life.
func (b *Broker) drop(e *errand) {
	b.held -= int64(len(e.body))
	delete(b.errands, e.key)
	b.crewOf(e.key.id).remove(e)
}
