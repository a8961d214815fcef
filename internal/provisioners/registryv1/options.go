// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// Who makes the serving certificates of webhooks and API services.
const (
	certificatesAuto        = "Auto" // cert-manager if the cluster serves it, else RukPak
	certificatesCertManager = "CertManager"
	certificatesBuiltIn     = "BuiltIn"
	certificatesNone        = "None" // the bundle is rendered as it is
)

const (
	constraintsRefuse = "Refuse"
	constraintsIgnore = "Ignore"
)

const certManagerAPI = "cert-manager.io/v1"

// choice says which of several bundles is meant.
type choice struct {
	Version string `json:"version,omitempty"` // of the ClusterServiceVersion, its name, or the folder
	Channel string `json:"channel,omitempty"` // of a package file
}

// parameters are those of a class.
type parameters struct {
	choice
	Certificates string `json:"certificates,omitempty"`
	// Constraints says what becomes of a bundle that needs others: "Refuse" (default) or "Ignore".
	Constraints string `json:"constraints,omitempty"`
}

// Config is what an instance may say.
type Config struct {
	choice
	// WatchNamespace is a namespace, or a list of them where the bundle can watch several.
	WatchNamespace json.RawMessage   `json:"watchNamespace,omitempty"`
	Deployment     *DeploymentConfig `json:"deploymentConfig,omitempty"`

	targets []string
}

// DeploymentConfig changes all Deployments of a bundle, as the config of a Subscription of OLM v0 does.
type DeploymentConfig struct {
	Env          []corev1.EnvVar              `json:"env,omitempty"`          // replaces variables of the same name
	EnvFrom      []corev1.EnvFromSource       `json:"envFrom,omitempty"`      // added
	Volumes      []corev1.Volume              `json:"volumes,omitempty"`      // added
	VolumeMounts []corev1.VolumeMount         `json:"volumeMounts,omitempty"` // added
	Tolerations  []corev1.Toleration          `json:"tolerations,omitempty"`  // added
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"`    // replaces
	NodeSelector map[string]string            `json:"nodeSelector,omitempty"` // replaces
	Affinity     *corev1.Affinity             `json:"affinity,omitempty"`     // replaces those of the three kinds that are set
	Annotations  map[string]string            `json:"annotations,omitempty"`  // added, where there is none of the name
}

func parseParameters(raw json.RawMessage) (parameters, error) {
	var parsed parameters
	if err := parse.Strict(raw, &parsed, "parameters", "certificates, constraints, version and channel"); err != nil {
		return parsed, err
	}
	if err := oneOf("certificates", parsed.Certificates, certificatesAuto, certificatesCertManager, certificatesBuiltIn, certificatesNone); err != nil {
		return parsed, err
	}
	return parsed, oneOf("constraints", parsed.Constraints, constraintsRefuse, constraintsIgnore)
}

func oneOf(field, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return refuse("parameters", "%s is %q: it may be %s", field, value, strings.Join(allowed, ", "))
}

func (p parameters) provider(cluster provisioner.Cluster) string {
	switch p.Certificates {
	case "", certificatesAuto:
		if cluster.Serves(certManagerAPI) {
			return certificatesCertManager
		}
		return certificatesBuiltIn
	}
	return p.Certificates
}

const configFields = "watchNamespace, deploymentConfig, version and channel"

// chosenBy takes the instance's choice, or the class's if the instance has none. What else is wrong with the configuration is
// for parseConfig to say, which knows the bundle.
func chosenBy(raw json.RawMessage, parameters parameters) (choice, error) {
	var parsed Config
	if err := parse.Strict(raw, &parsed, "config", configFields); err != nil {
		return choice{}, err
	}
	if parsed.choice == (choice{}) {
		return parameters.choice, nil
	}
	return parsed.choice, nil
}

// parseConfig checks the configuration against the install modes of the bundle.
func parseConfig(raw json.RawMessage, modes modes, namespace string) (Config, error) {
	var parsed Config
	if err := parse.Strict(raw, &parsed, "config", configFields); err != nil {
		return parsed, err
	}
	watched, isList, err := parsed.watched()
	if err != nil {
		return parsed, err
	}
	if isList && !modes.multi && modes.configurable() {
		return parsed, refuse("config", "watchNamespace is a list, and the bundle supports %s: give one namespace", modes)
	}
	parsed.targets, err = modes.targets(watched, namespace)
	return parsed, err
}

// watched are the namespaces of watchNamespace, sorted.
func (c Config) watched() (names []string, isList bool, err error) {
	raw := bytes.TrimSpace(c.WatchNamespace)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		names = []string{one}
	} else if json.Unmarshal(raw, &names) != nil {
		return nil, false, refuse("config", "watchNamespace is neither the name of a namespace nor a list of names")
	}
	for _, name := range names {
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			return nil, false, refuse("config", "watchNamespace: %q is no name of a namespace", name)
		}
	}
	slices.Sort(names)
	if compact := slices.Compact(slices.Clone(names)); len(compact) < len(names) {
		return nil, false, refuse("config", "watchNamespace names a namespace twice")
	}
	return names, raw[0] == '[', nil
}

// modes are the install modes that a bundle supports.
type modes struct{ own, single, multi, all bool }

// String lists them as the ClusterServiceVersion does.
func (m modes) String() string {
	var names []string
	for _, mode := range []struct {
		name string
		is   bool
	}{{"AllNamespaces", m.all}, {"MultiNamespace", m.multi}, {"OwnNamespace", m.own}, {"SingleNamespace", m.single}} {
		if mode.is {
			names = append(names, mode.name)
		}
	}
	if len(names) == 0 {
		return "no install mode"
	}
	return strings.Join(names, ", ")
}

// configurable tells whether there is anything to say about the namespaces that are watched.
func (m modes) configurable() bool { return m.own || m.single || m.multi }

// targets are the namespaces that a bundle is to watch: [""] for all of them.
func (m modes) targets(watched []string, namespace string) ([]string, error) {
	const set = "watchNamespace"
	own := slices.Contains(watched, namespace)
	switch {
	case len(watched) == 0 && m.all:
		return []string{""}, nil
	case len(watched) == 0 && m.own:
		return nil, refuse("config", "%s is required, since the bundle supports %s only: set it to %q, the namespace of the instance", set, m, namespace)
	case len(watched) == 0:
		return nil, refuse("config", "%s is required, since the bundle supports %s only: name the namespace to watch", set, m)
	case !m.configurable():
		return nil, refuse("config", "%s: the bundle supports %s only, and watches all namespaces: leave it out", set, m)
	case own && !m.own:
		return nil, refuse("config", "%s: the bundle supports %s, and cannot watch %q, the namespace of the instance", set, m, namespace)
	case len(watched) == 1 && own, len(watched) == 1 && m.single, len(watched) > 1 && m.multi:
		return watched, nil
	case m.own && !m.multi:
		return nil, refuse("config", "%s: the bundle supports %s, so it has to be %q, the namespace of the instance", set, m, namespace)
	}
	return nil, refuse("config", "%s: the bundle supports %s, which does not fit %s", set, m, fmt.Sprintf("%q", watched))
}
