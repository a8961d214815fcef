// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	s3 "github.com/minio/minio-go/v7/pkg/credentials"
	corev1 "k8s.io/api/core/v1"

	imageregistry "rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/source/outbound"
)

// Files of a folder with credentials, which is a mounted Secret. The names are
// those of the Secrets of sources.
const (
	accessKeyFile    = "accessKey"
	secretKeyFile    = "secretKey"
	sessionTokenFile = "sessionToken"
	usernameFile     = "username"
	passwordFile     = "password"
)

// keysLife is how long keys are used before their files are read again.
const keysLife = time.Minute

// credentialFile reads a file of the folder; "" if it is not there.
func credentialFile(dir, file string) (string, error) {
	if dir == "" {
		return "", nil
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("--shared-store-credentials %s: the folder cannot be read; is the Secret mounted there? %w", dir, err)
		}
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("--shared-store-credentials: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// pairOf reads two files that only make sense together.
func pairOf(dir, one, two string) (first, second string, err error) {
	if first, err = credentialFile(dir, one); err != nil {
		return "", "", err
	}
	if second, err = credentialFile(dir, two); err != nil {
		return "", "", err
	}
	if (first == "") != (second == "") {
		return "", "", fmt.Errorf("--shared-store-credentials %s: it needs both %s and %s", dir, one, two)
	}
	return first, second, nil
}

// s3Keys gives the keys of the folder, or else those of the environment.
func s3Keys(dir string) (s3.Provider, error) {
	if dir == "" {
		return &s3.EnvAWS{}, nil
	}
	keys := &keyFiles{dir: dir}
	_, err := keys.Retrieve()
	return keys, err
}

// keyFiles are keys that may be changed while the manager runs.
type keyFiles struct {
	dir  string
	read time.Time
}

// RetrieveWithCredContext reads the files.
func (k *keyFiles) RetrieveWithCredContext(*s3.CredContext) (s3.Value, error) { return k.Retrieve() }

// Retrieve reads the files.
func (k *keyFiles) Retrieve() (s3.Value, error) {
	access, secret, err := pairOf(k.dir, accessKeyFile, secretKeyFile)
	if err != nil {
		return s3.Value{}, err
	}
	if access == "" {
		return s3.Value{}, fmt.Errorf("--shared-store-credentials %s: it has no %s and %s", k.dir, accessKeyFile, secretKeyFile)
	}
	token, err := credentialFile(k.dir, sessionTokenFile)
	if err != nil {
		return s3.Value{}, err
	}
	k.read = time.Now()
	return s3.Value{AccessKeyID: access, SecretAccessKey: secret, SessionToken: token, SignerType: s3.SignatureV4}, nil
}

// IsExpired makes the files be read again now and then.
func (k *keyFiles) IsExpired() bool { return time.Since(k.read) > keysLife }

// registryLogin gives credentials of the folder whenever some are needed.
func registryLogin(dir, repository string) (authn.Authenticator, error) {
	if dir == "" {
		return authn.Anonymous, nil
	}
	login := &loginFiles{dir: dir, repository: repository}
	_, err := login.Authorization()
	return login, err
}

// loginFiles are a user's name and password, or a Docker configuration.
type loginFiles struct{ dir, repository string }

// Authorization reads the files.
func (l *loginFiles) Authorization() (*authn.AuthConfig, error) {
	user, password, err := pairOf(l.dir, usernameFile, passwordFile)
	if err != nil || user != "" {
		return &authn.AuthConfig{Username: user, Password: password}, err
	}
	data, err := credentialFile(l.dir, corev1.DockerConfigJsonKey)
	if err != nil || data == "" {
		return &authn.AuthConfig{}, err // a certificate may be all
	}
	logins, err := imageregistry.LoginsOfFile([]byte(data))
	if err != nil {
		return nil, fmt.Errorf("--shared-store-credentials %s: %s: %w", l.dir, corev1.DockerConfigJsonKey, err)
	}
	repository, err := name.NewRepository(l.repository)
	if err != nil {
		return nil, err
	}
	for _, found := range imageregistry.NewKeychain(logins).Candidates(repository) {
		return found.Authorization()
	}
	return nil, fmt.Errorf("--shared-store-credentials %s: %s has no credentials for %s", l.dir, corev1.DockerConfigJsonKey, repository.RegistryStr())
}

// storeTLS gives whom to trust and which certificate to show.
func storeTLS(dir string) (*tls.Config, error) {
	authority, err := credentialFile(dir, "ca.crt")
	if err != nil {
		return nil, err
	}
	certificate, key, err := pairOf(dir, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	if err != nil {
		return nil, err
	}
	config, err := outbound.TLS{CA: []byte(authority), Certificate: []byte(certificate), Key: []byte(key)}.Config()
	if err != nil {
		return nil, fmt.Errorf("--shared-store-credentials %s: %w", dir, err)
	}
	return config, nil
}
