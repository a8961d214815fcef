// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/spelling"
)

type approvalsVerb struct {
	*session
	output output
	spaces bool // of all namespaces
	anyone bool
}

func (s *session) approvalsCommand() *cobra.Command {
	v := &approvalsVerb{session: s}
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List the revisions that wait for your approval, oldest first",
		Long: `Lists the revisions that wait for an approval which you can give: you hold the verb "approve" on their class, have
not decided about them yet, and, where the class wants two persons, did not change the instance.

A line with --prune is about the deletion of what older revisions left: approve it with that flag.
APPROVALS says how many users approved already. "rukpak get approvals" lists the decisions that were made.`,
		Example: `  rukpak approvals -A
  # Also those that wait for others, and why they are not yours
  rukpak approvals --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context())
		},
	}
	v.output.addTo(cmd, formatWide)
	cmd.Flags().BoolVarP(&v.spaces, "all-namespaces", "A", false, "List those of all namespaces")
	cmd.Flags().BoolVar(&v.anyone, "all", false, "List also those that wait for others")
	return cmd
}

// waitingEntry is one revision that waits, in `approvals -o json`.
type waitingEntry struct {
	Namespace      string                `json:"namespace"`
	Revision       string                `json:"revision"`
	Class          string                `json:"class"`
	ManifestDigest v1alpha1.Digest       `json:"manifestDigest"`
	Since          metav1.Time           `json:"since"`
	ChangedBy      []string              `json:"changedBy,omitempty"`
	ApprovedBy     []string              `json:"approvedBy,omitempty"`
	Plan           *v1alpha1.PlanSummary `json:"plan,omitempty"`
	Message        string                `json:"message"`
	// Prune are removals of older revisions, if it is these that wait, and not the revision.
	Prune *v1alpha1.HeldRemovals `json:"prune,omitempty"`
	// NotYours says why you cannot decide about it, if so.
	NotYours string `json:"notYours,omitempty"`
}

func (v *approvalsVerb) run(ctx context.Context) error {
	cluster, namespace, err := v.place()
	if err != nil {
		return err
	}
	if v.spaces {
		namespace = ""
	}
	var list v1alpha1.InstanceRevisionList
	if err := cluster.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	me, err := whoAmI(ctx, cluster)
	if err != nil {
		return err
	}
	judge := &mine{cluster: cluster, user: me.Username, known: map[string]bool{}, classes: map[string]*v1alpha1.ProvisionerClass{}}
	entries := []waitingEntry{}
	for _, revision := range waiting(list.Items) {
		entry := entryOf(revision)
		if entry.NotYours, err = judge.notMine(ctx, revision, entry.Prune); err != nil {
			return err
		}
		if v.anyone || entry.NotYours == "" {
			entries = append(entries, entry)
		}
	}
	if !v.output.forPeople() {
		return v.value(entries, v.output.format)
	}
	if len(entries) == 0 {
		v.nothing(namespace)
		return nil
	}
	return v.table(entries).Write(v.Out)
}

func (v *approvalsVerb) nothing(namespace string) {
	text := "Nothing waits for your approval"
	if v.anyone {
		text = "Nothing waits for an approval"
	}
	if namespace != "" {
		text += fmt.Sprintf(" in namespace %q", namespace)
	}
	v.say("%s.", text)
}

// waiting are the newest revisions of instances that wait for people, oldest first.
func waiting(all []v1alpha1.InstanceRevision) []*v1alpha1.InstanceRevision {
	newest := map[types.UID]*v1alpha1.InstanceRevision{}
	for i := range all {
		of := all[i].Spec.Instance.UID
		if newest[of] == nil || newest[of].Spec.Number < all[i].Spec.Number {
			newest[of] = &all[i]
		}
	}
	var found []*v1alpha1.InstanceRevision
	for _, revision := range newest {
		if state.OfRevision(revision).Word == state.Waiting {
			found = append(found, revision)
		}
	}
	for i := range all {
		if removalsOf(&all[i]) != nil {
			found = append(found, &all[i])
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.InstanceRevision) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	return found
}

func entryOf(revision *v1alpha1.InstanceRevision) waitingEntry {
	if waits := removalsOf(revision); waits != nil {
		asked := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionPruneApproved)
		return waitingEntry{
			Namespace: revision.Namespace, Revision: revision.Name, Class: revision.Spec.ProvisionerClassName,
			ManifestDigest: revision.Spec.ManifestDigest, Since: asked.LastTransitionTime, ChangedBy: revision.Spec.ChangedBy,
			ApprovedBy: voters(revision, waits), Message: state.OfPrune(revision).Message, Prune: waits,
			Plan: &v1alpha1.PlanSummary{Removed: waits.Count},
		}
	}
	return waitingEntry{
		Namespace: revision.Namespace, Revision: revision.Name, Class: revision.Spec.ProvisionerClassName,
		ManifestDigest: revision.Spec.ManifestDigest, Since: revision.CreationTimestamp, ChangedBy: revision.Spec.ChangedBy,
		ApprovedBy: approval.Names(revision.Status.Decisions), Plan: revision.Status.Plan, Message: state.OfRevision(revision).Message,
	}
}

// mine says which revisions wait for one user.
type mine struct {
	cluster client.Client
	user    string
	known   map[string]bool                       // answers of the API server
	classes map[string]*v1alpha1.ProvisionerClass // nil for one that cannot be read
}

// notMine says why a revision waits for somebody else, "" if it waits for the user.
func (m *mine) notMine(ctx context.Context, revision *v1alpha1.InstanceRevision, waits *v1alpha1.HeldRemovals) (string, error) {
	class := revision.Spec.ProvisionerClassName
	for _, one := range []authorizationv1.ResourceAttributes{
		{Group: v1alpha1.GroupVersion.Group, Resource: "provisionerclasses", Verb: "approve", Name: class},
		{Group: v1alpha1.GroupVersion.Group, Resource: "approvals", Verb: "create", Namespace: revision.Namespace},
	} {
		if allowed, err := m.may(ctx, one); err != nil || !allowed {
			return fmt.Sprintf("you may not %s %s %s", one.Verb, one.Resource, cmp.Or(one.Name, "in "+one.Namespace)), err
		}
	}
	rules := m.class(ctx, class)
	switch {
	case slices.Contains(voters(revision, waits), m.user):
		return "you approved it", nil
	case rules != nil && rules.AllowSelfApproval != nil && !*rules.AllowSelfApproval && slices.Contains(revision.Spec.ChangedBy, m.user):
		return "you changed the instance", nil
	}
	return "", nil
}

func (m *mine) may(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	key := strings.Join([]string{what.Verb, what.Resource, what.Namespace, what.Name}, "/")
	if answer, ok := m.known[key]; ok {
		return answer, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	if err := m.cluster.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask the API server what you may do: %w", err)
	}
	m.known[key] = review.Status.Allowed
	return review.Status.Allowed, nil
}

func (m *mine) class(ctx context.Context, name string) *v1alpha1.ApprovalPolicy {
	found, asked := m.classes[name]
	if !asked {
		read := &v1alpha1.ProvisionerClass{}
		if err := m.cluster.Get(ctx, client.ObjectKey{Name: name}, read); err == nil {
			found = read
		}
		m.classes[name] = found
	}
	if found == nil {
		return nil
	}
	return &found.Spec.Approval
}

func (v *approvalsVerb) table(entries []waitingEntry) table.Table {
	wide := v.output.format == formatWide
	shown := table.Table{Titles: []string{"REVISION", "CLASS", "ADDED", "CHANGED", "REMOVED", "CHANGED BY", "APPROVALS", "WAITING"}}
	if v.spaces {
		shown.Titles = append([]string{"NAMESPACE"}, shown.Titles...)
	}
	if v.anyone {
		shown.Titles = append(shown.Titles, "NOT YOURS")
	}
	if wide {
		shown.Titles = append(shown.Titles, "MANIFESTS", "MESSAGE")
	}
	rows := rowMaker{paint: v.painter(), now: v.now()}
	for _, entry := range entries {
		plan := entry.Plan
		if plan == nil {
			plan = &v1alpha1.PlanSummary{}
		}
		name := entry.Revision
		if entry.Prune != nil {
			name += " --prune" // as it is to be approved
		}
		cells := []string{
			name, entry.Class, number(plan.Added), number(plan.Changed), number(plan.Removed),
			spelling.Names(entry.ChangedBy), number(int64(len(entry.ApprovedBy))), rows.age(entry.Since),
		}
		if v.spaces {
			cells = append([]string{entry.Namespace}, cells...)
		}
		if v.anyone {
			cells = append(cells, entry.NotYours)
		}
		if wide {
			cells = append(cells, string(entry.ManifestDigest), paint.Clean(entry.Message))
		}
		shown.Add(cells...)
	}
	return shown
}
