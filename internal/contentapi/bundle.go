// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/unpack/fsimage"
)

// How long a request waits for content that is fetched again, how often it
// looks, and when a client that waited in vain is to come again.
const (
	patience   = 5 * time.Second
	lookPause  = 50 * time.Millisecond
	comeAgain  = 2 // seconds
	notYetWord = "the content of Bundle %s/%s is being fetched; come again"
)

// opened is the content of a Bundle.
type opened struct {
	bundle *v1alpha1.Bundle
	digest digest.Digest
	tree   *fsimage.Tree // with what is inside of filesystem images
}

// close ends the reading of images.
func (o *opened) close() { _ = o.tree.Close() } // they were only read

// open finds the Bundle and its content. Content that the store has lost is
// fetched again: the request waits for a moment, and else says when to come
// again.
func (c *call) open() (*opened, error) {
	ctx := c.r.Context()
	name := types.NamespacedName{Namespace: c.info.Namespace, Name: c.info.Name}
	bundle := &v1alpha1.Bundle{}
	if err := c.server.Client.Get(ctx, name, bundle); err != nil {
		return nil, c.absent("Bundle", err)
	}
	if bundle.Status.Content == nil {
		return nil, withoutContent(bundle)
	}
	sum := digest.Digest(bundle.Status.Content.Digest)
	tree, err := c.server.Contents.Open(ctx, sum)
	if isLost(err) {
		if err := c.await(ctx, name, sum); err != nil {
			return nil, err
		}
		tree, err = c.server.Contents.Open(ctx, sum)
	}
	if err != nil {
		return nil, c.judge(err)
	}
	return &opened{bundle: bundle, digest: sum, tree: fsimage.Inside(tree)}, nil
}

// absent says that an object does not exist, if that is what it is.
func (c *call) absent(kind string, err error) error {
	if apierrors.IsNotFound(err) {
		return notFound("there is no %s %q in namespace %q", kind, c.info.Name, c.info.Namespace)
	}
	return err
}

func (c *call) await(ctx context.Context, name types.NamespacedName, tree digest.Digest) error {
	c.server.Lost(name)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !c.server.Contents.Has(tree) {
		select {
		case <-ctx.Done():
			return later(comeAgain, notYetWord, name.Namespace, name.Name)
		case <-time.After(lookPause):
		}
	}
	return nil
}

// judge turns errors of the store into answers. What is damaged is fetched
// again.
func (c *call) judge(err error) error {
	switch {
	case err == nil:
		return nil
	case isLost(err):
		c.server.Lost(types.NamespacedName{Namespace: c.info.Namespace, Name: c.info.Name})
		return later(comeAgain, notYetWord, c.info.Namespace, c.info.Name)
	}
	return err
}

func isLost(err error) bool {
	_, corrupt := errors.AsType[*content.CorruptError](err)
	return corrupt || errors.Is(err, fs.ErrNotExist)
}

// withoutContent says why a Bundle has none.
func withoutContent(bundle *v1alpha1.Bundle) error {
	ready := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason == v1alpha1.ReasonUnpacking {
		return later(comeAgain, notYetWord, bundle.Namespace, bundle.Name)
	}
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("bundles").GroupResource(), bundle.Name,
		fmt.Errorf("it has no content: %s: %s", ready.Reason, ready.Message))
}
