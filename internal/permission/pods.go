// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"rukpak.io/rukpak/internal/images"
	"rukpak.io/rukpak/internal/ownership"
)

// pod is a Pod, or a template of Pods, of an object of any kind.
type pod struct {
	object ownership.ID
	meta   metav1.ObjectMeta
	spec   corev1.PodSpec
	fault  string // why it cannot be read; then nothing else is known of it
}

// podsOf finds what has containers where Pods have them, also in custom resources.
func podsOf(objects []*unstructured.Unstructured) []pod {
	var all []pod
	for _, object := range objects {
		for _, fields := range images.Pods(object) {
			spec, _ := fields["spec"].(map[string]any)
			if _, has := spec["containers"]; !has {
				continue
			}
			one := pod{object: ownership.IDOf(object)}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &one.spec); err != nil {
				one.fault = err.Error()
			}
			if meta, ok := fields["metadata"].(map[string]any); ok {
				_ = runtime.DefaultUnstructuredConverter.FromUnstructured(meta, &one.meta) // only annotations count, and custom resources may have others
			}
			all = append(all, one)
		}
	}
	return all
}

func (p pod) account() accountID {
	name := p.spec.ServiceAccountName
	if name == "" {
		name = p.spec.DeprecatedServiceAccount
	}
	if name == "" {
		name = "default"
	}
	return accountID{p.object.Namespace, name}
}

// hasToken reports whether containers can read a token of the Pod's account, or a certificate that says they are the account.
func (p pod) hasToken(w *world) bool {
	for _, volume := range p.spec.Volumes {
		if volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, identifies) {
			return true
		}
	}
	if said := p.spec.AutomountServiceAccountToken; said != nil {
		return *said
	}
	return w.automount(p.account())
}

func identifies(s corev1.VolumeProjection) bool {
	return s.ServiceAccountToken != nil || s.PodCertificate != nil
}

// addTokens notes the accounts that the content has tokens of.
func (c *content) addTokens() {
	for _, one := range c.pods {
		if one.fault == "" && one.hasToken(c.world) {
			account := c.account(one.account())
			account.Tokens = append(account.Tokens, one.object.String())
		}
	}
	for _, object := range c.objects {
		id := ownership.IDOf(object)
		kind, _, _ := unstructured.NestedString(object.Object, "type")
		if id.GroupKind() != (schema.GroupKind{Kind: "Secret"}) || kind != string(corev1.SecretTypeServiceAccountToken) {
			continue
		}
		if name := object.GetAnnotations()[corev1.ServiceAccountNameKey]; name != "" {
			account := c.account(accountID{id.Namespace, name})
			account.Tokens = append(account.Tokens, id.String())
		}
	}
}

// What a Pod has power over.
const (
	PodLevel         = "PodSecurityLevel" // the level of the Pod Security Standards that it needs: restricted, baseline or privileged
	PodViolates      = "Violates"         // a rule of the Pod Security Standards, in their words
	PodHostPath      = "HostPath"         // a path of the node that it can read and write
	PodHostPathRead  = "HostPathReadOnly" // one that it can only read
	PodHostNamespace = "HostNamespace"    // Network, PID or IPC of the node
	PodPrivileged    = "Privileged"       // a container without any bounds
	PodCapability    = "Capability"       // one that containers do not have by default
)

// PodPower is what Pods of a namespace may do to their nodes. Objects have them, and do not count in comparisons.
type PodPower struct {
	Namespace string   `json:"namespace"`
	What      string   `json:"what"`
	Value     string   `json:"value,omitempty"`
	Objects   []string `json:"objects"`
}

// evaluator judges by the newest version of the standards.
var evaluator = newEvaluator()

func newEvaluator() policy.Evaluator {
	made, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the checks of the library are wrong
	}
	return made
}

// Security is the level of the Pod Security Standards that an object needs, and what keeps it from a stricter one.
type Security struct {
	Level   api.Level
	Reasons []string // in words, such as `privileged (container "a" must not set securityContext.privileged=true)`
	rules   []string // those that are violated
}

// SecurityOf judges the Pods of an object; ok is false if it has none. What cannot be read needs to be privileged.
func SecurityOf(object *unstructured.Unstructured) (s Security, ok bool) {
	s.Level = api.LevelRestricted
	for _, one := range podsOf([]*unstructured.Unstructured{object}) {
		next := one.security()
		s.Level = laxer(s.Level, next.Level)
		s.Reasons = append(s.Reasons, next.Reasons...)
		ok = true
	}
	return s, ok
}

func laxer(a, b api.Level) api.Level {
	if api.CompareLevels(a, b) < 0 {
		return a
	}
	return b
}

func (p pod) security() Security {
	if p.fault != "" {
		return Security{Level: api.LevelPrivileged, Reasons: []string{"it cannot be read: " + p.fault}, rules: []string{"it cannot be read"}}
	}
	judge := func(level api.Level) policy.AggregateCheckResult {
		return policy.AggregateCheckResults(evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &p.meta, &p.spec))
	}
	basic, strict := judge(api.LevelBaseline), judge(api.LevelRestricted)
	s := Security{Level: api.LevelRestricted}
	for _, result := range []policy.AggregateCheckResult{basic, strict} { // most of the first are in the second, too
		for i, rule := range result.ForbiddenReasons {
			if slices.Contains(s.rules, rule) {
				continue
			}
			s.rules = append(s.rules, rule)
			if detail := result.ForbiddenDetails[i]; detail != "" {
				rule += " (" + detail + ")"
			}
			s.Reasons = append(s.Reasons, rule)
		}
	}
	switch {
	case !basic.Allowed:
		s.Level = api.LevelPrivileged
	case !strict.Allowed:
		s.Level = api.LevelBaseline
	}
	return s
}

func (c *content) podPowers() []PodPower {
	found := newCollection(func(p *PodPower) *[]string { return &p.Objects })
	for _, one := range c.pods {
		one.powers(func(what, value string) {
			found.add(PodPower{Namespace: one.object.Namespace, What: what, Value: value}, one.object.String())
		})
	}
	for _, object := range c.objects {
		if namespace, path := volumePath(object); path != "" {
			found.add(PodPower{Namespace: namespace, What: PodHostPath, Value: path}, ownership.IDOf(object).String())
		}
	}
	return found.sorted()
}

func (p pod) powers(add func(what, value string)) {
	security := p.security()
	add(PodLevel, string(security.Level))
	for _, rule := range security.rules {
		add(PodViolates, rule)
	}
	for name, shared := range map[string]bool{"Network": p.spec.HostNetwork, "PID": p.spec.HostPID, "IPC": p.spec.HostIPC} {
		if shared {
			add(PodHostNamespace, name)
		}
	}
	for _, container := range p.containers() {
		if context := container.SecurityContext; context != nil {
			if context.Privileged != nil && *context.Privileged {
				add(PodPrivileged, "")
			}
			if context.Capabilities != nil {
				for _, capability := range context.Capabilities.Add {
					add(PodCapability, strings.TrimPrefix(strings.ToUpper(string(capability)), "CAP_"))
				}
			}
		}
	}
	for _, volume := range p.spec.Volumes {
		if volume.HostPath == nil {
			continue
		}
		what := PodHostPathRead
		if p.writes(volume.Name) {
			what = PodHostPath
		}
		add(what, volume.HostPath.Path)
	}
}

// writes reports whether a container mounts a volume for writing.
func (p pod) writes(volume string) bool {
	return slices.ContainsFunc(p.containers(), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && !m.ReadOnly }) ||
			slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == volume })
	})
}

func (p pod) containers() []corev1.Container {
	all := slices.Concat(p.spec.InitContainers, p.spec.Containers)
	for _, c := range p.spec.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	return all
}
