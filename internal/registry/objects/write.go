// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/rules"
)

// maxRules of one object.
const maxRules = 64

// Write makes RegistryConfig objects with a name, and the Secrets that they
// name, and says what they cannot express.
func Write(d *rules.Document, name string) (rules.Files, []rules.Note, error) {
	w := &writer{name: name, notes: []rules.Note{}, secrets: map[string]string{}}
	copied := w.spread(d)
	var specs []v1alpha1.RegistryRule
	for i := range copied.Rules {
		if spec, ok := w.rule(&copied.Rules[i]); ok {
			specs = append(specs, spec)
		}
	}
	for _, helper := range d.Helpers {
		w.lose(helper.From, "the credential helper %q is lost: the manager runs no programs", helper.Name)
	}
	var configs bytes.Buffer
	for i := 0; i*maxRules < len(specs); i++ {
		config := &v1alpha1.RegistryConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RegistryConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
		if i > 0 {
			config.Name = fmt.Sprintf("%s-%d", name, i+1)
		}
		config.Spec.Rules = specs[i*maxRules : min((i+1)*maxRules, len(specs))]
		if err := appendYAML(&configs, config); err != nil {
			return nil, nil, err
		}
	}
	files := rules.Files{}
	if configs.Len() > 0 {
		files["registryconfig.yaml"] = configs.Bytes()
	}
	if w.made.Len() > 0 {
		files["secrets.yaml"] = w.made.Bytes()
	}
	return files, w.notes, w.err
}

func appendYAML(to *bytes.Buffer, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	if to.Len() > 0 {
		to.WriteString("---\n")
	}
	to.Write(text)
	return nil
}

type writer struct {
	name    string
	notes   []rules.Note
	secrets map[string]string // names by content
	made    bytes.Buffer
	err     error
}

func (w *writer) lose(from, format string, args ...any) {
	w.notes = append(w.notes, rules.Note{Where: from, What: fmt.Sprintf(format, args...)})
}

// spread puts credentials that stand by host to the endpoints at that host.
func (w *writer) spread(d *rules.Document) *rules.Document {
	copied := &rules.Document{Rules: slices.Clone(d.Rules)}
	for i := range copied.Rules {
		copied.Rules[i].Mirrors = slices.Clone(copied.Rules[i].Mirrors)
	}
	byHost := map[string][]registry.Login{}
	var hosts []string
	for _, login := range d.Logins {
		host, _ := rules.Split(registry.PlaceOf(login.For))
		if _, known := byHost[host]; !known {
			hosts = append(hosts, host)
		}
		byHost[host] = append(byHost[host], login)
	}
	for _, host := range hosts {
		copied.HostAccess(host, "the credentials for "+host, func(a *rules.Access) {
			a.Logins = append(slices.Clone(a.Logins), byHost[host]...)
		})
	}
	return copied
}

func (w *writer) rule(r *rules.Rule) (v1alpha1.RegistryRule, bool) {
	spec := v1alpha1.RegistryRule{Prefix: rules.Normal(r.Prefix), Blocked: r.Blocked}
	if !goodPrefix(spec.Prefix) {
		w.lose(r.From, "the rule is lost: a RegistryConfig has no prefix like %q", r.Prefix)
		return spec, false
	}
	if r.Blocked {
		return spec, true
	}
	if r.Rewrite != "" && !goodLocation(rules.Normal(r.Rewrite)) {
		w.lose(r.From, "the rule is lost: a RegistryConfig has no location like %q", r.Rewrite)
		return spec, false
	}
	if !r.MirrorOnly {
		spec.Rewrite = v1alpha1.RegistryLocation(rules.Normal(r.Rewrite))
	}
	spec.RegistryAccess = w.access(r.From, r.Prefix, &r.Primary)
	if r.Prefix == "*" && spec.Credentials != nil {
		w.lose(r.From, "credentials for every host are lost: a RegistryConfig has them by host or domain")
		spec.Credentials = nil
	}
	for i := range r.Mirrors {
		if m, ok := w.mirror(&r.Mirrors[i]); ok {
			spec.Mirrors = append(spec.Mirrors, m)
		}
	}
	spec.MirrorOnly = r.MirrorOnly
	if spec.MirrorOnly && len(spec.Mirrors) == 0 {
		w.lose(r.From, "the rule blocks: no mirror is left of it, and its primary is never asked")
		return v1alpha1.RegistryRule{Prefix: spec.Prefix, Blocked: true}, true
	}
	return spec, true
}

func (w *writer) mirror(m *rules.Mirror) (v1alpha1.RegistryMirror, bool) {
	spec := v1alpha1.RegistryMirror{Location: v1alpha1.RegistryLocation(rules.Normal(m.Location)), APIPath: m.APIPath}
	if !goodLocation(string(spec.Location)) || m.APIPath != "" && !apiPathRegexp.MatchString(m.APIPath) {
		w.lose(m.From, "the mirror is lost: a RegistryConfig has no location like %q", m.Location+m.APIPath)
		return spec, false
	}
	for scope, from := range scopes {
		if from == m.For && scope != v1alpha1.RegistryScopeAll {
			spec.Pull = scope
		}
	}
	spec.RegistryAccess = w.access(m.From, m.Location, &m.Access)
	return spec, true
}

func (w *writer) access(from, place string, a *rules.Access) v1alpha1.RegistryAccess {
	spec := v1alpha1.RegistryAccess{Insecure: a.PlainHTTP, SkipVerify: a.SkipVerify}
	if a.CA != nil {
		spec.CA = &v1alpha1.RegistryCA{PEM: string(a.CA)}
	}
	if a.Certificate != nil {
		spec.ClientCertificate = w.secret("tls", corev1.SecretTypeTLS, map[string][]byte{
			corev1.TLSCertKey: a.Certificate.Certificate, corev1.TLSPrivateKeyKey: a.Certificate.Key,
		})
	}
	if len(a.Logins) > 0 {
		spec.Credentials = w.credentials(place, a.Logins)
	}
	if p := a.Proxy; p != nil {
		spec.Proxy = &v1alpha1.RegistryProxy{URL: p.URL, NoProxy: p.NoProxy}
		if p.User != "" {
			spec.Proxy.Credentials = w.secret("proxy", corev1.SecretTypeBasicAuth, map[string][]byte{
				corev1.BasicAuthUsernameKey: []byte(p.User), corev1.BasicAuthPasswordKey: []byte(p.Password),
			})
		}
	}
	spec.DialTimeout = wireDuration(a.DialTimeout)
	if a.Retry.Attempts > 0 {
		spec.Retry = &v1alpha1.RegistryRetry{Attempts: int32(min(a.Retry.Attempts, 10)), Delay: wireDuration(a.Retry.Delay), MaxDelay: wireDuration(a.Retry.MaxDelay)}
	}
	if a.Rate.PerSecond > 0 {
		spec.RateLimit = &v1alpha1.RegistryRateLimit{RequestsPerSecond: int32(max(1, a.Rate.PerSecond)), Burst: int32(a.Rate.Burst)}
	}
	if len(a.Headers) > 0 {
		w.lose(from, "the headers are lost: a RegistryConfig has none")
	}
	return spec
}

func wireDuration(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

func (w *writer) credentials(place string, logins []registry.Login) *v1alpha1.LocalReference {
	config, err := docker.WriteConfig(&rules.Document{Rules: []rules.Rule{{Prefix: place, Primary: rules.Access{Logins: logins}}}}, docker.Containers, &w.notes)
	if err != nil {
		w.err = err
		return nil
	}
	return w.secret("credentials", corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: config})
}

// secret makes a Secret, once for the same content.
func (w *writer) secret(what string, kind corev1.SecretType, data map[string][]byte) *v1alpha1.LocalReference {
	content := fmt.Sprint(kind, data)
	name, known := w.secrets[content]
	if !known {
		name = fmt.Sprintf("%s-%s-%d", w.name, what, len(w.secrets)+1)
		w.secrets[content] = name
		err := appendYAML(&w.made, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: name},
			Type:       kind, Data: data,
		})
		if err != nil {
			w.err = err
		}
	}
	return &v1alpha1.LocalReference{Name: name}
}
