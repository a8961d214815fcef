// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lister reads custom resources from the API server, without a cache. It is asked for pages, with client.Limit and
// client.Continue, into an UnstructuredList of the kind and version. A client.Client is one.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

// Live are the bounds of reading custom resources. The zero value has those in brackets.
type Live struct {
	// Page is how many are read at once, which is what is in memory (100).
	Page int64
	// PageTime is how long the API server may take for one page (15 s): a dead webhook keeps it waiting for longer.
	PageTime time.Duration
	// Time is how long all pages of a definition may take (2 minutes).
	Time time.Duration
}

func (l Live) withDefaults() Live {
	if l.Page <= 0 {
		l.Page = 100
	}
	if l.PageTime <= 0 {
		l.PageTime = 15 * time.Second
	}
	if l.Time <= 0 {
		l.Time = 2 * time.Minute
	}
	return l
}

// CheckLive validates every live custom resource of before against the schemas of after, and says what is wrong with
// them that was not wrong before. Without a conversion webhook each is looked at as one of every version that after
// serves, since it can be read and written as such; with one, as what the webhook makes of it in every version that
// both serve. Findings are as those of Check, one for the same fault of many custom resources.
//
// Custom resources that cannot be read are a finding of rule LiveUnread. An error means that nothing is known: the API
// server cannot be reached, or ctx ended.
func CheckLive(ctx context.Context, lister Lister, before, after *apiextensionsv1.CustomResourceDefinition, policy Policy, bounds Live) ([]Finding, error) {
	if before == nil || after == nil || !liveMatters(policy) || same(before.Spec.Versions, after.Spec.Versions) {
		return nil, nil
	}
	bounds = bounds.withDefaults()
	deadline, cancel := context.WithTimeoutCause(ctx, bounds.Time, errSlow)
	defer cancel()
	c := &liveCheck{lister: lister, bounds: bounds, before: before, after: after, policy: policy, tallies: map[versioned]*tally{}, left: map[Rule]int{}}
	for _, reading := range c.readings() {
		if err := c.read(deadline, reading); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("custom resources of %s in version %s: %w", before.Name, reading.version, err)
		}
	}
	return c.findings(), nil
}

func liveMatters(policy Policy) bool {
	return policy.Action(LiveInvalid) != Allow || policy.Action(LivePruned) != Allow || policy.Action(LiveUnread) != Allow
}

// liveCheck is one call of CheckLive.
type liveCheck struct {
	lister        Lister
	bounds        Live
	before, after *definition
	tallies       map[versioned]*tally
	policy        Policy
	left          map[Rule]int // faults that are not told one by one
}

// reading is one pass through all custom resources.
type reading struct {
	version string
	against []*served // versions of the new definition
}

// readings are the passes that are needed.
func (c *liveCheck) readings() []reading {
	if converts(c.before) || converts(c.after) {
		var all []reading
		for i := range c.before.Spec.Versions {
			v := &c.before.Spec.Versions[i]
			if same := versionOf(c.after, v.Name); v.Served && same != nil && same.Served {
				all = append(all, reading{version: v.Name, against: []*served{same}})
			}
		}
		return all
	}
	version := readable(c.before)
	if version == "" {
		return nil // no version is served: nobody can read or write one
	}
	only := reading{version: version}
	for i := range c.after.Spec.Versions {
		if v := &c.after.Spec.Versions[i]; v.Served {
			only.against = append(only.against, v)
		}
	}
	return []reading{only}
}

// readable is the version in which nothing is lost on the way: the one that is stored, if it is served.
func readable(of *definition) string {
	name := ""
	for i := range of.Spec.Versions {
		v := &of.Spec.Versions[i]
		if v.Served && (v.Storage || name == "") {
			name = v.Name
		}
	}
	return name
}

var errSlow = errors.New("they could not all be read in the time there is")

// read goes through all pages. Its error is one that leaves nothing known.
func (c *liveCheck) read(ctx context.Context, of reading) error {
	checks := c.validators(of)
	next, read := "", 0
	for {
		page, err := c.page(ctx, of.version, next)
		if token := continued(err); token != "" {
			next = token // the rest, as it is now: the first pages are too old to be gone on with
			continue
		}
		if err != nil {
			return c.unread(err, of.version, read)
		}
		for i := range page.Items {
			if ctx.Err() != nil {
				return c.unread(context.Cause(ctx), of.version, read)
			}
			c.object(ctx, &page.Items[i], checks)
			read++
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

func (c *liveCheck) page(ctx context.Context, version, next string) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.bounds.PageTime, errDead)
	defer cancel()
	var page unstructured.UnstructuredList
	page.SetGroupVersionKind(runtimeschema.GroupVersionKind{
		Group: c.before.Spec.Group, Version: version, Kind: c.before.Spec.Names.Kind + "List",
	})
	err := c.lister.List(ctx, &page, client.Limit(c.bounds.Page), client.Continue(next))
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &page, err
}

var errDead = errors.New("the API server did not answer in time")

// continued is the token with which the API server offers to go on where a list has expired.
func continued(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// unread turns an error into a finding, unless nothing is known from it.
func (c *liveCheck) unread(err error, version string, read int) error {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errSlow), errors.Is(err, errDead), meta.IsNoMatchError(err):
	case errors.As(err, &status):
	default:
		return err
	}
	message := "none of the custom resources can be read"
	if read > 0 {
		message = fmt.Sprintf("only the first %d custom resources can be read", read)
	}
	if converts(c.before) {
		message += " (a webhook converts them: see whether it runs)"
	}
	c.note(fault{LiveUnread, "", message + ": " + err.Error()}, version, nil)
	return nil
}
