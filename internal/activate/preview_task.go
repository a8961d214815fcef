// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
)

// Task previews the run of one task: its action is Ran if it would be started.
func (p *Previews) Task(ctx context.Context, source *unstructured.Unstructured) Preview {
	scope, err := p.session.scope(source.GroupVersionKind())
	if err != nil {
		return failure(ownership.IDOf(source), err)
	}
	desired := Desired(source, p.session.owner, scope, p.session.options.DefaultNamespace)
	id := ownership.IDOf(desired)
	preview := Preview{ObjectResult: ObjectResult{ID: id, Action: Ran}}
	made, err := p.session.create(ctx, desired, client.DryRunAll)
	switch {
	case apierrors.IsAlreadyExists(err):
		err = p.earlierRun(ctx, desired, &preview)
	case knowsNoDryRun(err):
		preview.Unchecked = oneLine(err.Error())
		return preview
	case namespaceGoes(err):
		preview.Wait = "namespace " + id.Namespace + " is being deleted"
		return preview
	case err == nil:
		preview.After = made
		_, err = policyOf(desired)
	}
	if err != nil {
		return failure(id, err)
	}
	return preview
}

// earlierRun says what is to come of the object that has the name of a task. That one could be created but for its name
// means that the API server has nothing else against it.
func (p *Previews) earlierRun(ctx context.Context, desired *unstructured.Unstructured, preview *Preview) error {
	live, err := p.session.get(ctx, desired)
	if apierrors.IsNotFound(err) {
		return nil // gone meanwhile
	}
	if err != nil {
		return err
	}
	wait, stays, err := p.session.earlierRun(ctx, "", desired, live)
	switch {
	case err != nil:
		return err
	case stays:
		preview.Note = "the one of an earlier run stays as it is, since what it holds would be lost"
	case live.GetDeletionTimestamp() != nil:
		preview.Wait = wait
	default:
		preview.Note = "the one of an earlier run is deleted first"
	}
	return nil
}
