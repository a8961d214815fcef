// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
)

// SecretError says which pull secret cannot be used. It never shows any of the
// secret's content.
type SecretError struct {
	Namespace, Name string
	Key             string // of the data, or "" if the type is wrong
	Problem         string
}

// Error names secret and key.
func (e *SecretError) Error() string {
	text := fmt.Sprintf("pull secret %s/%s: ", e.Namespace, e.Name)
	if e.Key != "" {
		text += fmt.Sprintf("key %q: ", e.Key)
	}
	return text + e.Problem
}

// FromSecrets makes a keychain of Secrets of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg, tried in this
// order. A Secret that cannot be read is a *SecretError; several are joined.
func FromSecrets(secrets []corev1.Secret) (Keychain, error) {
	var all []Login
	var failures []error
	for i := range secrets {
		logins, err := LoginsOf(&secrets[i])
		if err != nil {
			failures = append(failures, err)
		}
		all = append(all, logins...)
	}
	return NewKeychain(all), errors.Join(failures...)
}

// login is how pull secrets write credentials.
type login struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of "username:password"
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// LoginsOf reads a Secret of the types kubernetes.io/dockerconfigjson and
// kubernetes.io/dockercfg. Its error is a *SecretError.
func LoginsOf(secret *corev1.Secret) ([]Login, error) {
	fail := func(key, problem string) error {
		return &SecretError{Namespace: secret.Namespace, Name: secret.Name, Key: key, Problem: problem}
	}
	key := corev1.DockerConfigJsonKey
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
	case corev1.SecretTypeDockercfg:
		key = corev1.DockerConfigKey
	default:
		return nil, fail("", fmt.Sprintf("its type is %q; it must be %q or %q", secret.Type, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg))
	}
	data, ok := secret.Data[key]
	if !ok {
		return nil, fail(key, "it is missing")
	}
	logins, problem := parseLogins(data, key == corev1.DockerConfigJsonKey)
	if problem != "" {
		return nil, fail(key, problem)
	}
	var found []Login
	for _, host := range slices.Sorted(maps.Keys(logins)) {
		if strings.TrimSpace(host) == "" {
			continue // for nobody; in a Login it would mean for everybody
		}
		auth, problem := logins[host].config()
		if problem != "" {
			return nil, fail(key, fmt.Sprintf("the credentials of one registry cannot be read: %s", problem))
		}
		found = append(found, Login{For: host, AuthConfig: auth})
	}
	return found, nil
}

// FileProblem says what is wrong with a Docker configuration, without any of its
// content. Offset is the byte where, or 0.
type FileProblem struct {
	Offset  int64
	Problem string
}

// Error gives the problem.
func (e *FileProblem) Error() string { return e.Problem }

// LoginsOfFile reads the credentials of a Docker configuration, such as
// config.json or auth.json, by host. Its error is a *FileProblem.
func LoginsOfFile(data []byte) ([]Login, error) {
	if err := json.Unmarshal(data, &struct{}{}); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, &FileProblem{Offset: syntax.Offset, Problem: "it is not valid JSON"}
		}
	}
	logins, problem := parseLogins(data, true)
	if problem != "" {
		return nil, &FileProblem{Problem: problem}
	}
	var found []Login
	for _, host := range slices.Sorted(maps.Keys(logins)) {
		if PlaceOf(strings.TrimSpace(host)) == "" {
			continue // for nobody
		}
		auth, problem := logins[host].config()
		if problem != "" {
			return nil, &FileProblem{Problem: fmt.Sprintf("the credentials for %q cannot be read: %s", host, problem)}
		}
		if auth != (authn.AuthConfig{}) { // an empty entry says that a helper has them
			found = append(found, Login{For: host, AuthConfig: auth})
		}
	}
	return found, nil
}

// parseLogins reads the JSON. Errors of the decoder quote what they found, so
// only their place is told.
func parseLogins(data []byte, wrapped bool) (map[string]login, string) {
	var file struct {
		Auths map[string]login `json:"auths"`
	}
	target := any(&file.Auths)
	if wrapped {
		target = &file
	}
	err := json.Unmarshal(data, target)
	if err == nil {
		return file.Auths, ""
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Sprintf("it is not valid JSON at byte %d", syntax.Offset)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Sprintf("at byte %d it has another type than a Docker configuration", wrong.Offset)
	}
	return nil, "it is not valid JSON"
}

// config gives credentials as go-containerregistry wants them, or a problem.
func (l login) config() (authn.AuthConfig, string) {
	c := authn.AuthConfig{Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken}
	if l.Auth == "" {
		return c, ""
	}
	text, err := base64.StdEncoding.DecodeString(l.Auth)
	if err != nil {
		text, err = base64.RawStdEncoding.DecodeString(l.Auth)
	}
	if err != nil {
		return c, `"auth" is not base64`
	}
	user, password, ok := strings.Cut(string(text), ":")
	if !ok {
		return c, `"auth" is not base64 of "username:password"`
	}
	c.Username, c.Password = user, strings.Trim(password, "\x00")
	return c, ""
}
