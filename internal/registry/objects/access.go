// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
)

// Reader reads what rules name, in the namespace of the manager. Something that
// does not exist is an error of the kind NotFound.
type Reader interface {
	// Namespace is where what is named stands.
	Namespace() string
	Secret(ctx context.Context, name string) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error)
}

// defaultKey of certificates, as the API server puts it.
const defaultKey = "ca.crt"

// ErrNotRead is given by a Reader that leaves something alone: the rule then
// says only where it is.
var ErrNotRead = errors.New("it is not read")

func (r *ruleReader) access(at, place string, spec *v1alpha1.RegistryAccess) rules.Access {
	a := rules.Access{PlainHTTP: spec.Insecure, SkipVerify: spec.SkipVerify, DialTimeout: duration(spec.DialTimeout)}
	if spec.Retry != nil {
		a.Retry = rules.Retry{Attempts: int(spec.Retry.Attempts), Delay: duration(spec.Retry.Delay), MaxDelay: duration(spec.Retry.MaxDelay)}
	}
	if limit := spec.RateLimit; limit != nil {
		a.Rate = rules.Rate{PerSecond: float64(limit.RequestsPerSecond), Burst: int(limit.Burst)}
		if a.Rate.Burst == 0 {
			a.Rate.Burst = int(limit.RequestsPerSecond)
		}
	}
	var problems []error
	for _, part := range []struct {
		field string
		set   bool
		read  func(*rules.Access) error
	}{
		{"ca", spec.CA != nil, func(a *rules.Access) error { return r.ca(spec.CA, a) }},
		{"clientCertificate", spec.ClientCertificate != nil, func(a *rules.Access) error { return r.certificate(spec.ClientCertificate.Name, a) }},
		{"credentials", spec.Credentials != nil, func(a *rules.Access) error { return r.credentials(spec.Credentials.Name, place, a) }},
		{"proxy", spec.Proxy != nil, func(a *rules.Access) error { return r.proxy(spec.Proxy, a) }},
	} {
		if !part.set {
			continue
		}
		if err := part.read(&a); err != nil && !errors.Is(err, ErrNotRead) {
			problems = append(problems, r.fail(at+part.field, err))
		}
	}
	a.Problem = errors.Join(problems...)
	return a
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// secret reads a Secret. What does not exist is a problem of the rule; other
// failures are ones of reading.
func (r *ruleReader) secret(name string) (*corev1.Secret, string, error) {
	where := fmt.Sprintf("Secret %s/%s", r.read.Namespace(), name)
	found, err := r.read.Secret(r.ctx, name)
	return found, where, r.judge(where, err)
}

func (r *ruleReader) judge(where string, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrNotRead):
		return err
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist", where)
	}
	r.failures = append(r.failures, fmt.Errorf("%s: read the %s: %w", r.from, where, err))
	return err
}

func (r *ruleReader) ca(spec *v1alpha1.RegistryCA, a *rules.Access) error {
	switch {
	case spec.PEM != "":
		a.CA, a.Origins.CA = []byte(spec.PEM), "ca.pem of "+r.from
	case spec.ConfigMap != nil:
		where := fmt.Sprintf("ConfigMap %s/%s", r.read.Namespace(), spec.ConfigMap.Name)
		key := cmp.Or(spec.ConfigMap.Key, defaultKey)
		a.Origins.CA = where + ", key " + key
		found, err := r.read.ConfigMap(r.ctx, spec.ConfigMap.Name)
		if err = r.judge(where, err); err != nil {
			return err
		}
		text, ok := found.Data[key]
		if !ok {
			return fmt.Errorf("%s has no key %q", where, key)
		}
		a.CA = []byte(text)
	case spec.Secret != nil:
		found, where, err := r.secret(spec.Secret.Name)
		key := cmp.Or(spec.Secret.Key, defaultKey)
		a.Origins.CA = where + ", key " + key
		if err != nil {
			return err
		}
		data, ok := found.Data[key]
		if !ok {
			return fmt.Errorf("%s has no key %q", where, key)
		}
		a.CA = data
	}
	return reach.Check(&rules.Access{CA: a.CA})
}

func (r *ruleReader) certificate(name string, a *rules.Access) error {
	found, where, err := r.secret(name)
	a.Origins.Certificate = where
	if err != nil {
		return err
	}
	if found.Type != corev1.SecretTypeTLS {
		return fmt.Errorf("%s is of the type %q; it must be %q", where, found.Type, corev1.SecretTypeTLS)
	}
	pair := &rules.KeyPair{Certificate: found.Data[corev1.TLSCertKey], Key: found.Data[corev1.TLSPrivateKeyKey]}
	if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
		return fmt.Errorf("%s holds no certificate with its key in PEM", where)
	}
	a.Certificate = pair
	return nil
}

func (r *ruleReader) credentials(name, place string, a *rules.Access) error {
	found, where, err := r.secret(name)
	a.Origins.Credentials = where
	if err != nil {
		return err
	}
	if found.Type == corev1.SecretTypeBasicAuth {
		user, password, err := basicAuth(found, where)
		login := registry.Login{}
		login.Username, login.Password = user, password
		a.Logins = []registry.Login{login}
		return err
	}
	logins, err := registry.LoginsOf(found)
	if err != nil {
		return fmt.Errorf("%w (%q is fine, too)", err, corev1.SecretTypeBasicAuth)
	}
	host, _ := rules.Split(place)
	if !strings.HasPrefix(host, "*") && !registry.NewKeychain(logins).Knows(host) {
		return fmt.Errorf("%s has no credentials for %s", where, host)
	}
	a.Logins = logins
	return nil
}

func basicAuth(secret *corev1.Secret, where string) (user, password string, err error) {
	user, password = string(secret.Data[corev1.BasicAuthUsernameKey]), string(secret.Data[corev1.BasicAuthPasswordKey])
	if user == "" {
		return "", "", fmt.Errorf("%s has no key %q, or an empty one", where, corev1.BasicAuthUsernameKey)
	}
	return user, password, nil
}

func (r *ruleReader) proxy(spec *v1alpha1.RegistryProxy, a *rules.Access) error {
	a.Proxy = &rules.Proxy{URL: spec.URL, NoProxy: spec.NoProxy}
	a.Origins.Proxy = "proxy of " + r.from
	if err := reach.Check(&rules.Access{Proxy: a.Proxy}); err != nil {
		return err
	}
	if spec.Credentials == nil {
		return nil
	}
	found, where, err := r.secret(spec.Credentials.Name)
	a.Origins.Proxy += " with " + where
	if err != nil {
		return err
	}
	if found.Type != corev1.SecretTypeBasicAuth {
		return fmt.Errorf("%s is of the type %q; it must be %q", where, found.Type, corev1.SecretTypeBasicAuth)
	}
	a.Proxy.User, a.Proxy.Password, err = basicAuth(found, where)
	return err
}

// Named gives the Secrets and ConfigMaps that objects name.
func Named(list []v1alpha1.RegistryConfig) (secrets, configMaps map[string]bool) {
	secrets, configMaps = map[string]bool{}, map[string]bool{}
	for i := range list {
		for j := range list[i].Spec.Rules {
			rule := &list[i].Spec.Rules[j]
			named(&rule.RegistryAccess, secrets, configMaps)
			for k := range rule.Mirrors {
				named(&rule.Mirrors[k].RegistryAccess, secrets, configMaps)
			}
		}
	}
	return secrets, configMaps
}

func named(a *v1alpha1.RegistryAccess, secrets, configMaps map[string]bool) {
	for _, ref := range []*v1alpha1.LocalReference{a.ClientCertificate, a.Credentials} {
		if ref != nil {
			secrets[ref.Name] = true
		}
	}
	if a.Proxy != nil && a.Proxy.Credentials != nil {
		secrets[a.Proxy.Credentials.Name] = true
	}
	if a.CA != nil && a.CA.Secret != nil {
		secrets[a.CA.Secret.Name] = true
	}
	if a.CA != nil && a.CA.ConfigMap != nil {
		configMaps[a.CA.ConfigMap.Name] = true
	}
}
