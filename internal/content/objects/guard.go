// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Patience says how a place that does not answer is treated. The zero value has
// good defaults.
type Patience struct {
	Tries int           // of each request, as long as the place is unavailable; 3
	Pause time.Duration // between the first two, and three times that between others; 300 ms
	Rest  time.Duration // for how long a place that gave no answer is not asked again; 10 s
	Limit time.Duration // for a request that carries no object; 30 s
}

func (p Patience) filled() Patience {
	if p.Tries == 0 {
		p.Tries = 3
	}
	if p.Pause == 0 {
		p.Pause = 300 * time.Millisecond
	}
	if p.Rest == 0 {
		p.Rest = 10 * time.Second
	}
	if p.Limit == 0 {
		p.Limit = 30 * time.Second
	}
	return p
}

// Guard makes a place fit for daily use: requests are sent again while the place
// is unavailable, take no time while it is known to be, and do not hang.
func Guard(place Backend, patience Patience) Backend {
	return &guard{Backend: place, Patience: patience.filled()}
}

type guard struct {
	Backend
	Patience

	mu    sync.Mutex
	until time.Time // it is left alone
	last  error     // for this reason
}

func (g *guard) Put(ctx context.Context, name string, body Body) error {
	return g.try(ctx, 0, func(ctx context.Context) error { return g.Backend.Put(ctx, name, body) })
}

func (g *guard) Get(ctx context.Context, name string) (found io.ReadCloser, err error) {
	err = g.try(ctx, 0, func(ctx context.Context) (err error) {
		found, err = g.Backend.Get(ctx, name)
		return err
	})
	return found, err
}

func (g *guard) Stat(ctx context.Context, name string) (info Info, err error) {
	err = g.try(ctx, g.Limit, func(ctx context.Context) (err error) {
		info, err = g.Backend.Stat(ctx, name)
		return err
	})
	return info, err
}

func (g *guard) Delete(ctx context.Context, name string) error {
	return g.try(ctx, g.Limit, func(ctx context.Context) error { return g.Backend.Delete(ctx, name) })
}

// List is not sent again after it gave a name.
func (g *guard) List(ctx context.Context, each func(string) error) error {
	begun := false
	var stop error
	err := g.try(ctx, 0, func(ctx context.Context) error {
		err := g.Backend.List(ctx, func(name string) error {
			begun = true
			return each(name)
		})
		if begun && err != nil {
			stop = err
			return nil
		}
		return err
	})
	return errors.Join(err, stop)
}

func (g *guard) try(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if err := g.resting(); err != nil {
		return err
	}
	pause := g.Pause
	for left := g.Tries; ; left-- {
		err := within(ctx, limit, do)
		if !Is(err, Unavailable) || ctx.Err() != nil {
			return err
		}
		if left <= 1 {
			g.rest(err)
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		pause *= 3
	}
}

func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if limit == 0 {
		return do(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

func (g *guard) resting() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		return g.last
	}
	return nil
}

func (g *guard) rest(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until, g.last = time.Now().Add(g.Rest), err
}
