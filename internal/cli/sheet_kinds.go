// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/spelling"
)

func (d *sheet) instance(instance *v1alpha1.BundleInstance) {
	spec, status := instance.Spec, instance.Status
	d.facts(
		"Instance", instance.Namespace+"/"+instance.Name,
		"State", d.state(state.OfInstance(instance)),
		"Content", instanceContent(instance),
		"Bundle", status.BundleName,
		"Configuration", configText(spec),
		"Service account", cmp.Or(spec.ServiceAccountName, "the class's default"),
		"Active", referenceText(status.Active, status.Objects),
		"Pending", referenceText(status.Pending, nil),
		"Rolled back to", numberOr(spec.RollbackTo),
		"Strategy", strategyText(spec.Strategy),
		"Created", d.created(instance.CreationTimestamp),
	)
	d.conditions(status.Conditions)
}

func instanceContent(instance *v1alpha1.BundleInstance) string {
	switch {
	case instance.Spec.BundleRef != nil:
		return notInUse(instance, "bundle "+instance.Spec.BundleRef.Name)
	case instance.Spec.Bundle != nil:
		return notInUse(instance, sourcesText(instance.Spec.Bundle.Sources))
	}
	return ""
}

// notInUse says of what the spec names that an instance which is rolled back does not have it.
func notInUse(instance *v1alpha1.BundleInstance, content string) string {
	if instance.Spec.RollbackTo == nil {
		return content
	}
	return fmt.Sprintf("that of revision %d; %s has no effect before the rollback ends", *instance.Spec.RollbackTo, content)
}

func referenceText(reference *v1alpha1.RevisionReference, objects *v1alpha1.ObjectCounts) string {
	if reference == nil {
		return "none"
	}
	text := reference.Name + ", manifests " + string(reference.ManifestDigest)
	if objects != nil {
		text += fmt.Sprintf(", %d of %d objects healthy", objects.Healthy, objects.Total)
	}
	return text
}

// strategyText names what differs from the defaults.
func strategyText(strategy v1alpha1.Strategy) string {
	var parts []string
	if strategy.Adoption != "" && strategy.Adoption != v1alpha1.AdoptNever {
		parts = append(parts, "adoption "+string(strategy.Adoption))
	}
	if strategy.Prune != nil && !*strategy.Prune {
		parts = append(parts, "no pruning")
	}
	if strategy.RecreateImmutable {
		parts = append(parts, "recreates what cannot be changed")
	}
	if deadline := strategy.ProgressDeadline; deadline != nil && deadline.Duration != defaultTimeout {
		parts = append(parts, "progress deadline "+deadline.Duration.String())
	}
	return strings.Join(parts, ", ")
}

func (d *sheet) revision(revision *v1alpha1.InstanceRevision) {
	spec, status := revision.Spec, revision.Status
	objects := ""
	if status.Objects != nil {
		objects = fmt.Sprintf("%d of %d healthy", status.Objects.Healthy, status.Objects.Total)
	}
	drift := ""
	if status.DriftUndone > 0 {
		drift = "undone " + plural.Of(int(status.DriftUndone), "time")
	}
	d.facts(
		"Revision", revision.Namespace+"/"+revision.Name,
		"State", d.state(state.OfRevision(revision)),
		"Instance", fmt.Sprintf("%s, number %d", spec.Instance.Name, spec.Number),
		"Rollback of", numberOr(spec.RollbackOf),
		"Bundle", spec.BundleName,
		"Class", spec.ProvisionerClassName,
		"Changed by", spelling.Names(spec.ChangedBy),
		"Service account", spec.ServiceAccountName,
		"Activated as", installerText(spec),
		"Manifests", string(spec.ManifestDigest),
		"Content", string(spec.ContentDigest),
		"Configuration", string(spec.ConfigDigest),
		"Objects", objects,
		"Drift", drift,
		"Notes", paint.Clean(strings.Join(strings.Fields(status.Notes), " ")),
		"Provisional", provisionalText(status.ProvisionalFor),
		"Created", d.created(revision.CreationTimestamp),
	)
	d.list("Comes out differently each time", status.Varies)
	d.conditions(status.Conditions)
}

// installerText says who activates a revision, if its service account does not.
func installerText(spec v1alpha1.InstanceRevisionSpec) string {
	if spec.Installer == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s, healed as %s", spec.Installer.Namespace, spec.Installer.Name, spec.ServiceAccountName)
}

// provisionalText says that a revision may be rendered anew.
func provisionalText(facts v1alpha1.Digest) string {
	if facts == "" {
		return ""
	}
	return "it was rendered before all that it depends on was ready; if the cluster serves other APIs by then, it is rendered anew"
}

// list writes a title and lines under it; nothing if there are none.
func (d *sheet) list(title string, lines []string) {
	shown := table.Table{}
	for _, line := range lines {
		shown.Add(paint.Clean(line))
	}
	d.section(title, shown)
}

func (d *sheet) bundle(bundle *v1alpha1.Bundle) {
	content := ""
	if held := bundle.Status.Content; held != nil {
		content = fmt.Sprintf("%s, %s, %s", held.Digest, plural.Of(int(held.Files), "file"), bytesText(held.Bytes))
	}
	facts := []string{
		"Bundle", bundle.Namespace + "/" + bundle.Name,
		"State", d.state(state.OfBundle(bundle)),
		"Class", cmp.Or(bundle.Status.ProvisionerClassName, bundle.Spec.ProvisionerClassName, "the default class"),
	}
	facts = append(facts, bundleSources(bundle)...)
	d.facts(append(facts,
		"Signed", verdictText(bundle.Status.Verification),
		"Content", content,
		"Made by", bundle.Labels[v1alpha1.LabelInstance],
		"Created", d.created(bundle.CreationTimestamp),
	)...)
	d.conditions(bundle.Status.Conditions)
	if held := bundle.Status.Content; held != nil {
		d.conflicts(held)
	}
}

// bundleSources say of each source what it is now; of several also the index in the spec, which messages name.
func bundleSources(bundle *v1alpha1.Bundle) (facts []string) {
	for i, source := range bundle.Spec.Sources {
		number := ""
		if len(bundle.Spec.Sources) > 1 {
			number = fmt.Sprintf(" %d", i)
		}
		facts = append(facts, "Source"+number, sourcesText([]v1alpha1.BundleSource{source}))
		if i >= len(bundle.Status.Sources) {
			continue
		}
		resolved := bundle.Status.Sources[i]
		text := resolved.Ref
		if resolved.Version != "" {
			text += ", chosen as " + resolved.Version
		}
		facts = append(facts, "Resolved"+number+" to", text)
	}
	return facts
}

// conflicts list the files that later sources hide.
func (d *sheet) conflicts(held *v1alpha1.BundleContent) {
	shown := table.Table{}
	for _, one := range held.Conflicts {
		shown.Add(paint.Clean(one.Path), fmt.Sprintf("of source %d", one.Hidden), fmt.Sprintf("source %d has it too", one.Seen))
	}
	if more := held.ConflictCount - int64(len(held.Conflicts)); more > 0 {
		shown.Add(fmt.Sprintf("and %d more", more))
	}
	d.section("Hidden by later sources", shown)
}

func (d *sheet) class(class *v1alpha1.ProvisionerClass) {
	account, installer, namespaces, parameters := "", "", "all", ""
	if identity := class.Spec.Identity; identity != nil {
		account = identity.DefaultServiceAccount
		if by := identity.Installer; by != nil {
			installer = by.Namespace + "/" + by.Name + ", for what is approved"
		}
	}
	if class.Spec.AllowedNamespaces != nil {
		namespaces = metav1.FormatLabelSelector(class.Spec.AllowedNamespaces)
	}
	if class.Spec.Parameters != nil {
		parameters = string(class.Spec.Parameters.Raw)
	}
	isDefault := ""
	if class.Annotations[v1alpha1.AnnotationDefaultClass] == "true" {
		isDefault = "yes"
	}
	d.facts(
		"Class", class.Name,
		"State", d.state(state.OfClass(class)),
		"Provisioner", class.Spec.Provisioner,
		"Parameters", parameters,
		"Approval", string(class.Spec.Approval.Mode),
		"Default", isDefault,
		"Default service account", account,
		"Installer", installer,
		"Namespaces", namespaces,
		"Reclaim", string(class.Spec.ReclaimPolicy),
		"Created", d.created(class.CreationTimestamp),
	)
	d.receivers(class.Spec.Approval.Notify)
	d.conditions(class.Status.Conditions)
}

func (d *sheet) approval(approval *v1alpha1.Approval) {
	spec := approval.Spec
	d.facts(
		"Approval", approval.Namespace+"/"+approval.Name,
		"State", d.state(state.OfApproval(approval)),
		"Decision", string(spec.Decision),
		"Revision", spec.Revision,
		"By", spelling.Name(spec.Approver),
		"Message", paint.Clean(spec.Message),
		"Manifests", string(spec.ManifestDigest),
		"Removals", string(spec.Prune),
		"Class", spec.ProvisionerClassName,
		"Created", d.created(approval.CreationTimestamp),
	)
	d.conditions(approval.Status.Conditions)
}

func (d *sheet) created(at metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC") + " (" + d.age(at) + " ago)"
}

func numberOr(n *int64) string {
	if n == nil {
		return ""
	}
	return "revision " + number(*n)
}
