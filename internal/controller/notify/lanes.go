// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"sync"
	"time"

	"rukpak.io/rukpak/internal/notify"
	"rukpak.io/rukpak/internal/source/outbound"
)

const (
	// laneWidth is how many events are on their way to one url at once.
	laneWidth = 4
	// laneWait is when one that finds the lane full comes again.
	laneWait = time.Second
)

// lanes keeps what time is lost at receivers that do not answer from being lost for others: one to which nothing could be
// sent rests for a while, for all revisions, and is then tried with one event. Its methods may be called from several
// goroutines.
type lanes struct {
	first, longest time.Duration

	mu sync.Mutex
	of map[string]*lane // by url; only those with something in them
}

type lane struct {
	running  int
	failures int
	until    time.Time // it rests
	last     error     // why
}

// enter gives what is called when something was sent, or nil and when to come again; resting is why nobody is let in, if
// that is so.
func (l *lanes) enter(url string) (leave func(error), wait time.Duration, resting error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*lane{}
	}
	found := l.of[url]
	if found == nil {
		found = &lane{}
		l.of[url] = found
	}
	left := time.Until(found.until)
	switch {
	case found.failures > 0 && left > 0:
		return nil, left, found.last
	case found.failures > 0 && found.running > 0:
		return nil, laneWait, found.last
	case found.running >= laneWidth:
		return nil, laneWait, nil
	}
	found.running++
	return func(err error) { l.leave(url, found, err) }, 0, nil
}

func (l *lanes) leave(url string, from *lane, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from.running--
	if !silent(err) {
		from.failures, from.last = 0, nil
		if from.running == 0 && l.of[url] == from {
			delete(l.of, url)
		}
		return
	}
	pause := l.longest
	if from.failures < 20 {
		pause = min(l.first<<from.failures, l.longest)
	}
	from.failures++
	from.last, from.until = err, time.Now().Add(pause)
}

// silent tells an error of a receiver that did not answer. One that answers, and what is not even sent, costs no time.
func silent(err error) bool {
	if err == nil {
		return false
	}
	_, answered := errors.AsType[*notify.StatusError](err)
	_, config := errors.AsType[*notify.ConfigError](err)
	_, refused := errors.AsType[*outbound.AddressError](err)
	return !answered && !config && !refused
}
