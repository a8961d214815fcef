// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"

	"rukpak.io/rukpak/provisioner"
)

// hookCRD is the event of a definition of a kind in charts for Helm 2.
const hookCRD = "crd-install"

// step is a place among the phases at which hooks run.
type step int

const (
	stepBefore step = iota // before the state
	stepAfter              // after it
	stepTest
	stepTeardown
	stepTeardownFinish
	steps
)

// phaseNames of the steps; a number follows.
var phaseNames = [steps]string{"pre-hooks", "post-hooks", "tests", "pre-delete-hooks", "post-delete-hooks"}

// events of hooks, and when and where RukPak runs them.
var events = map[string]struct {
	step   step
	moment provisioner.Moment
}{
	string(release.HookPreInstall):   {stepBefore, provisioner.OnInstall},
	string(release.HookPreUpgrade):   {stepBefore, provisioner.OnUpgrade},
	string(release.HookPreRollback):  {stepBefore, provisioner.OnRollback},
	string(release.HookPostInstall):  {stepAfter, provisioner.OnInstall},
	string(release.HookPostUpgrade):  {stepAfter, provisioner.OnUpgrade},
	string(release.HookPostRollback): {stepAfter, provisioner.OnRollback},
	string(release.HookPreDelete):    {stepTeardown, provisioner.OnTeardown},
	string(release.HookPostDelete):   {stepTeardownFinish, provisioner.OnTeardownFinish},
	string(release.HookTest):         {stepTest, provisioner.OnTest},
	"test-success":                   {stepTest, provisioner.OnTest},
}

// deletions are when Helm deletes hooks, and what RukPak says for it.
var deletions = map[string]string{
	string(release.HookBeforeHookCreation): provisioner.DeleteBeforeRun,
	string(release.HookSucceeded):          provisioner.DeleteOnSuccess,
	string(release.HookFailed):             provisioner.DeleteOnFailure,
}

// hook is an object that runs at moments of some steps.
type hook struct {
	object
	weight int
	on     [steps][]provisioner.Moment
}

// sorting is what is made of the objects of a chart.
type sorting struct {
	state []object
	crds  []object // definitions of kinds that Helm would make before all else
	hooks []hook
	notes []string // what people should know
}

// sortOut tells hooks from state.
func (s *sorting) sortOut(objects []object) (faults []*provisioner.InputError) {
	for _, one := range objects {
		annotations := one.GetAnnotations()
		said, isHook := annotations[release.HookAnnotation]
		if !isHook {
			s.keep(one, annotations)
			continue
		}
		h := hook{object: one}
		h.weight, _ = strconv.Atoi(annotations[release.HookWeightAnnotation]) // 0 if it is none, as Helm has it
		unknown := h.runOn(said)
		switch {
		case isDefinition(one) && !h.isRun(stepBefore, stepAfter) && unknown != hookCRD:
			faults = append(faults, &provisioner.InputError{
				File: one.from, Object: provisioner.Describe(one.Object), Reason: "a hook at tests or deletion that defines a kind is not supported: put it into the folder crds/",
			})
		case isDefinition(one):
			s.crds = append(s.crds, one) // never deleted, as hooks that define kinds never are
		case unknown != "":
			s.notes = append(s.notes, fmt.Sprintf("%s: %s is left out, as by Helm: there is no hook %q", one.from, provisioner.Describe(one.Object), unknown))
		default:
			s.deleteWhen(&h, annotations)
			s.hooks = append(s.hooks, h)
		}
	}
	slices.SortStableFunc(s.hooks, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.GetName(), b.GetName()))
	})
	return faults
}

func (s *sorting) keep(one object, annotations map[string]string) {
	if strings.EqualFold(strings.TrimSpace(annotations["helm.sh/resource-policy"]), "keep") {
		annotate(one, provisioner.AnnotationPrune, provisioner.PruneDisabled)
	}
	s.state = append(s.state, one)
}

// runOn reads the events of a hook, and gives the first that there is not.
func (h *hook) runOn(said string) (unknown string) {
	for name := range strings.SplitSeq(said, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		event, known := events[name]
		if !known {
			return cmp.Or(name, "(empty)")
		}
		if moments := &h.on[event.step]; !slices.Contains(*moments, event.moment) {
			*moments = append(*moments, event.moment)
			slices.Sort(*moments)
		}
	}
	return ""
}

func (h *hook) isRun(at ...step) bool {
	return slices.ContainsFunc(at, func(s step) bool { return len(h.on[s]) > 0 })
}

// deleteWhen says when the task is deleted. Without a policy Helm's default is also RukPak's.
func (s *sorting) deleteWhen(h *hook, annotations map[string]string) {
	said, has := annotations[release.HookDeleteAnnotation]
	if !has {
		return
	}
	var when []string
	for name := range strings.SplitSeq(said, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		moment, known := deletions[name]
		switch {
		case !known && name != "":
			s.notes = append(s.notes, fmt.Sprintf("%s: %s: there is no policy of deletion %q", h.from, provisioner.Describe(h.Object), name))
		case known && !slices.Contains(when, moment):
			when = append(when, moment)
		}
	}
	if len(when) > 0 {
		slices.Sort(when)
		annotate(h.object, provisioner.AnnotationDeleteTask, strings.Join(when, ","))
	}
}

// phases are those of one step, one after another. Helm makes hooks one by one and waits for each; those that nothing has to
// be waited for go together, which is sooner done and comes out the same.
func (s *sorting) phases(at step, namespace string) []provisioner.Phase {
	var phases []provisioner.Phase
	in := map[identity]bool{} // in the last phase
	alone := true             // nothing may join the last phase
	var weight int
	for _, h := range s.hooks {
		if !h.isRun(at) {
			continue
		}
		id := identityOf(h.object, namespace)
		if last := len(phases) - 1; alone || isWaitedFor(h.object) || h.weight != weight || in[id] || !slices.Equal(phases[last].On, h.on[at]) {
			phases = append(phases, provisioner.Phase{Name: fmt.Sprintf("%s-%d", phaseNames[at], len(phases)+1), On: h.on[at]})
			clear(in)
		}
		last := &phases[len(phases)-1]
		last.Objects = append(last.Objects, h.DeepCopy()) // other steps have it as well
		in[id], alone, weight = true, isWaitedFor(h.object), h.weight
	}
	return phases
}

// isWaitedFor reports whether an object has to be there, or to have ended, before the next one is made.
func isWaitedFor(o object) bool {
	switch kind := o.GroupVersionKind().GroupKind(); kind.Group {
	case "batch":
		return kind.Kind == "Job"
	case "":
		return kind.Kind == "Pod" || kind.Kind == "Namespace"
	}
	return false
}

func annotate(o object, name, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}
