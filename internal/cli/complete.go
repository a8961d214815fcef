// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTimeout is short: a shell that hangs is worse than no proposal.
const completionTimeout = 2 * time.Second

type completer func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// completeNames proposes the names of objects of some kinds for the first argument.
func (s *session) completeNames(names ...string) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.namesOf(cmd.Context(), names, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeKindAndName proposes kinds, then names of the kind.
func (s *session) completeKindAndName(also ...string) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			words := slices.Clone(also)
			for _, known := range kinds() {
				words = append(words, known.plural)
			}
			return startingWith(words, toComplete), cobra.ShellCompDirectiveNoFileComp
		}
		known, ok := kindOf(args[0])
		if !ok {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.namesOf(cmd.Context(), []string{known.name}, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAccounts proposes service accounts of the namespace.
func (s *session) completeAccounts(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	_, namespace, err := s.place()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.proposed(cmd.Context(), &corev1.ServiceAccountList{}, start, client.InNamespace(namespace)), cobra.ShellCompDirectiveNoFileComp
}

// completeNamespaces proposes namespaces.
func (s *session) completeNamespaces(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return s.proposed(cmd.Context(), &corev1.NamespaceList{}, start), cobra.ShellCompDirectiveNoFileComp
}

// completeNumbers proposes the revisions of the instance that is named, by number.
func (s *session) completeNumbers(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	instance, err := s.instanceNamed(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	revisions, err := s.revisionsOf(ctx, instance)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var numbers []string
	for _, revision := range revisions {
		numbers = append(numbers, number(revision.Spec.Number))
	}
	return startingWith(numbers, start), cobra.ShellCompDirectiveNoFileComp
}

// proposed lists names of one kind.
func (s *session) proposed(ctx context.Context, list client.ObjectList, start string, options ...client.ListOption) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, err := s.client()
	if err != nil || cluster.List(ctx, list, options...) != nil {
		return nil
	}
	var found []string
	_ = meta.EachListItem(list, func(object runtime.Object) error {
		found = append(found, object.(client.Object).GetName())
		return nil
	})
	return startingWith(found, start)
}

// namesOf lists names; what cannot be listed is not proposed.
func (s *session) namesOf(ctx context.Context, names []string, start string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, namespace, err := s.place()
	if err != nil {
		return nil
	}
	var found []string
	for _, name := range names {
		known, _ := kindOf(name)
		list := known.list()
		if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
			continue
		}
		_ = meta.EachListItem(list, func(object runtime.Object) error {
			found = append(found, object.(client.Object).GetName())
			return nil
		})
	}
	return startingWith(found, start)
}

func startingWith(words []string, start string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, start) })
}

// completeFoldersAnd proposes folders, and names of objects of some kinds.
func (s *session) completeFoldersAnd(names ...string) completer {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if found := s.namesOf(cmd.Context(), names, start); len(found) > 0 {
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}
