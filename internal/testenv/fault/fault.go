// SPDX-License-Identifier: Apache-2.0

// Package fault makes an HTTP server misbehave on purpose: wrong statuses, cut, corrupted and stalled bodies. It
// stands between what a test plays (a registry, say) and RukPak's code for the source of content.
package fault

import (
	"net/http"
	"regexp"
	"sync"
)

// Action answers a request in place of next, or with a spoiled answer of next.
type Action func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Rule says which requests go wrong, and how.
type Rule struct {
	Method string         // empty for any
	Path   *regexp.Regexp // nil for any
	Times  int            // how often; 0 for as long as the rule stands
	Action Action
}

// Injector holds the rules for one server. The zero value lets everything pass. It is safe for use by several
// goroutines.
type Injector struct {
	mu    sync.Mutex
	rules []*Rule
	clear chan struct{} // closed when the rules are cleared, which frees what is stalled
}

// Add puts a rule behind the present ones; the first that matches a request decides. Clear takes all away.
func (i *Injector) Add(rule Rule) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = append(i.rules, &rule)
}

// Clear takes all rules away, and lets stalled answers go on.
func (i *Injector) Clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = nil
	if i.clear != nil {
		close(i.clear)
		i.clear = nil
	}
}

// Wrap returns a handler that asks the rules before next.
func (i *Injector) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if action := i.match(r); action != nil {
			action(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (i *Injector) match(r *http.Request) Action {
	i.mu.Lock()
	defer i.mu.Unlock()
	for index, rule := range i.rules {
		if !rule.matches(r) {
			continue
		}
		if rule.Times > 0 {
			if rule.Times--; rule.Times == 0 {
				i.rules = append(i.rules[:index:index], i.rules[index+1:]...)
			}
		}
		return rule.Action
	}
	return nil
}

func (r *Rule) matches(request *http.Request) bool {
	return (r.Method == "" || r.Method == request.Method) && (r.Path == nil || r.Path.MatchString(request.URL.Path))
}

func (i *Injector) cleared() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clear == nil {
		i.clear = make(chan struct{})
	}
	return i.clear
}
