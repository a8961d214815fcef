// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source/web"
)

// Keys of a Secret with what a web server wants to see.
const (
	keyUsername     = "username"
	keyPassword     = "password"
	keyBearer       = "bearerToken"
	keyHeaderPrefix = "header."
	keyCA           = "ca.crt"
)

// webAccess reads the Secret that a source of a web server names. No name means
// no credentials.
func (o *Opener) webAccess(ctx context.Context, ref *v1alpha1.LocalReference, at Place) (web.Credentials, error) {
	if ref == nil {
		return web.Credentials{}, nil
	}
	secret, err := o.namedSecret(ctx, ref.Name, at)
	if err != nil {
		return web.Credentials{}, err
	}
	found, err := webCredentials(secret)
	if err != nil {
		return web.Credentials{}, &SecretError{fmt.Sprintf("%s: Secret %q in namespace %q: %v", at.Field, ref.Name, at.Namespace, err)}
	}
	return found, nil
}

// namedSecret reads a Secret that must exist.
func (o *Opener) namedSecret(ctx context.Context, name string, at Place) (*corev1.Secret, error) {
	secret, err := o.readSecret(ctx, at.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, &SecretError{fmt.Sprintf("%s: Secret %q does not exist in namespace %q", at.Field, name, at.Namespace)}
	}
	return secret, err
}

// webCredentials reads keys. One that means nothing is an error: it is a
// mistake that would be looked for elsewhere.
func webCredentials(secret *corev1.Secret) (web.Credentials, error) {
	found := web.Credentials{}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		value := secret.Data[key]
		text := strings.TrimRight(string(value), "\r\n") // what editors and echo add
		switch name, header := strings.CutPrefix(key, keyHeaderPrefix); {
		case header:
			if found.Headers == nil {
				found.Headers = http.Header{}
			}
			if !plainHeader(name, text) {
				return web.Credentials{}, fmt.Errorf("key %q: it is no header, or its value holds line breaks", key)
			}
			found.Headers.Set(name, text)
		case key == keyUsername:
			found.Username = text
		case key == keyPassword:
			found.Password = text
		case key == keyBearer:
			found.Token = text
		case key == keyCA:
			found.TLS.CA = value
		case key == corev1.TLSCertKey:
			found.TLS.Certificate = value
		case key == corev1.TLSPrivateKeyKey:
			found.TLS.Key = value
		default:
			return web.Credentials{}, fmt.Errorf("key %q means nothing; known are username, password, bearerToken, header.<name>, ca.crt, tls.crt and tls.key", key)
		}
	}
	return found, complete(found)
}

func complete(found web.Credentials) error {
	switch {
	case found.Token != "" && (found.Username != "" || found.Password != ""):
		return fmt.Errorf("it has both %s and %s: one server wants one of them", keyBearer, keyUsername)
	case found.Token != "" && !plainHeader("Authorization", found.Token):
		return fmt.Errorf("key %q: it holds line breaks", keyBearer)
	case found.Password != "" && found.Username == "":
		return fmt.Errorf("key %q is missing", keyUsername)
	}
	_, err := found.TLS.Config()
	return err
}

// plainHeader tells whether a header can be sent.
func plainHeader(name, value string) bool {
	for _, c := range name {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != "" && !strings.ContainsFunc(value, func(c rune) bool { return c < 0x20 && c != '\t' || c == 0x7f })
}
