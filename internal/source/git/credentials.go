// SPDX-License-Identifier: Apache-2.0

package git

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// Credentials are what a server may ask for, and what tells that it is the
// right one.
type Credentials struct {
	Username, Password string
	BearerToken        string
	Identity           []byte // private key for SSH, in PEM; Password is its passphrase then
	KnownHosts         []byte // lines of a known_hosts file
	CA                 []byte // certificates in PEM, trusted beside the system's
}

// Keys of a Secret.
const (
	keyUsername    = "username"
	keyPassword    = "password"
	keyBearerToken = "bearerToken"
	keyIdentity    = "identity"
	keySSHAuth     = "ssh-privatekey" // of the type kubernetes.io/ssh-auth
	keyKnownHosts  = "known_hosts"
	keyCA          = "ca.crt"
)

// keyPublic is the public half, which some tools put beside the key. It is not needed.
const keyPublic = "identity.pub"

// CredentialsFrom reads the data of a Secret. A key that means nothing is an
// error: it is a mistake that would be looked for elsewhere. Errors hold no
// secret.
func CredentialsFrom(data map[string][]byte) (Credentials, error) {
	var c Credentials
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value := data[key]
		text := strings.TrimRight(string(value), "\r\n") // what editors and echo add
		switch key {
		case keyUsername:
			c.Username = text
		case keyPassword:
			c.Password = text
		case keyBearerToken:
			c.BearerToken = text
		case keyIdentity, keySSHAuth:
			c.Identity = value
		case keyKnownHosts:
			c.KnownHosts = value
		case keyCA:
			c.CA = value
		case keyPublic:
		default:
			return Credentials{}, fmt.Errorf("key %q means nothing; known are %s, %s, %s, %s, %s and %s", key,
				keyUsername, keyPassword, keyBearerToken, keyIdentity, keyKnownHosts, keyCA)
		}
	}
	if err := c.check(); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

func (c Credentials) check() error {
	switch {
	case c.BearerToken != "" && (c.Username != "" || c.Password != "") && len(c.Identity) == 0:
		return fmt.Errorf("it has both %s and %s: one server wants one of them", keyBearerToken, keyUsername)
	case strings.ContainsFunc(c.BearerToken+c.Username, unicode.IsControl):
		return fmt.Errorf("key %s or %s holds line breaks", keyUsername, keyBearerToken)
	case c.Password != "" && c.Username == "" && len(c.Identity) == 0:
		return fmt.Errorf("key %q is missing", keyUsername)
	case len(c.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CA):
		return fmt.Errorf("key %s holds no certificate in PEM", keyCA)
	case len(c.Identity) > 0:
		_, err := c.signer()
		return err
	}
	return nil
}

// signer gives the private key for SSH.
func (c Credentials) signer() (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(c.Identity)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		if c.Password == "" {
			return nil, fmt.Errorf("the private key in the key %s needs a passphrase: give it in the key %s", keyIdentity, keyPassword)
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(c.Identity, []byte(c.Password))
	}
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, fmt.Errorf("the passphrase in the key %s does not open the private key in the key %s", keyPassword, keyIdentity)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s holds no private key that SSH can use", keyIdentity)
	}
	return signer, nil
}

// authorize adds credentials to a request.
func (c Credentials) authorize(request *http.Request) {
	switch {
	case c.BearerToken != "":
		request.Header.Set("Authorization", "Bearer "+c.BearerToken)
	case c.Username != "" || c.Password != "" && len(c.Identity) == 0:
		request.SetBasicAuth(c.Username, c.Password)
	}
}

// forHTTP tells whether there is anything to show to a server of HTTP.
func (c Credentials) forHTTP() bool {
	return c.BearerToken != "" || c.Username != "" || c.Password != ""
}

// elsewhere gives what may be used with another server: what tells whom to
// trust.
func (c Credentials) elsewhere() Credentials { return Credentials{KnownHosts: c.KnownHosts, CA: c.CA} }

// secrets are texts that no error may show, for a server may repeat what it was sent.
func (c Credentials) secrets() []string {
	var found []string
	encoded := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	for _, secret := range []string{encoded, c.Password, c.BearerToken} {
		if len(secret) > 3 { // a shorter one would make the text unreadable, and is no secret
			found = append(found, secret)
		}
	}
	return found
}
