// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"rukpak.io/rukpak/internal/testenv/process"
)

// SSHOptions say what an SSH server is like.
type SSHOptions struct {
	OldProtocol bool // git is not told that the client speaks version 2 of its protocol
}

// SSH is an OpenSSH server on the loopback address. It lets the user of this process in, with one key.
type SSH struct {
	// Identity is the private key that it lets in, in PEM.
	Identity []byte
	// KnownHosts is its line in a known_hosts file.
	KnownHosts []byte
	// Address is "127.0.0.1:<port>".
	Address string

	user string
	key  ed25519.PrivateKey
}

const started = 10 * time.Second

// NewSSH starts a server that ends with the test. Without OpenSSH the test is skipped.
func NewSSH(t testing.TB, options SSHOptions) *SSH {
	t.Helper()
	program := "/usr/sbin/sshd"
	if found, err := exec.LookPath("sshd"); err == nil {
		program = found // by its whole path, which it wants
	} else if _, err := os.Stat(program); err != nil {
		t.Skip("SKIPPED: OpenSSH's server is not installed (Debian: apt-get install openssh-server)")
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755) // where it locks up the part of it that listens; it says so if it is missing
	}
	port, err := process.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	s := &SSH{Address: port.Address(), user: who.Username}
	dir := t.TempDir()
	s.configure(t, dir, port.Number, options)
	server, err := process.Start(process.Spec{Name: "sshd", Path: program, Args: []string{"-D", "-e", "-f", filepath.Join(dir, "config")}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(time.Second) })
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if connection, err := net.Dial("tcp", s.Address); err == nil {
			_ = connection.Close()
			return s
		}
		select {
		case <-server.Done():
			t.Fatal(server.Err())
		default:
		}
		if time.Since(begun) > started {
			t.Fatalf("sshd does not listen: %s", server.Tail(10))
		}
	}
}

func (s *SSH) configure(t testing.TB, dir string, port int, options SSHOptions) {
	t.Helper()
	host, hostPEM := newKey(t)
	client, clientPEM := newKey(t)
	s.Identity, s.key = clientPEM, client
	s.KnownHosts = []byte(knownhosts.Line([]string{s.Address}, public(t, host)) + "\n")
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nPidFile none\nUsePAM no\n"+
		"StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n", port, dir, dir)
	if !options.OldProtocol {
		config += "AcceptEnv GIT_PROTOCOL\n"
	}
	for name, data := range map[string][]byte{"host": hostPEM, "authorized": ssh.MarshalAuthorizedKey(public(t, client)), "config": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// URL gives that of a repository.
func (s *SSH) URL(repository *Repository) string {
	return "ssh://" + s.user + "@" + s.Address + repository.Dir
}

// Locked gives the private key locked by a passphrase.
func (s *SSH) Locked(t testing.TB, passphrase string) []byte {
	t.Helper()
	return lock(t, s.key, passphrase)
}

// NewLockedIdentity makes a private key that is locked by a passphrase.
func NewLockedIdentity(t testing.TB, passphrase string) []byte {
	t.Helper()
	key, _ := newKey(t)
	return lock(t, key, passphrase)
}

func lock(t testing.TB, key ed25519.PrivateKey, passphrase string) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// NewIdentity makes a private key, in PEM, that no server knows.
func NewIdentity(t testing.TB) []byte {
	t.Helper()
	_, encoded := newKey(t)
	return encoded
}

// NewKnownHosts makes a line of a known_hosts file that names a wrong key for an address.
func NewKnownHosts(t testing.TB, address string) []byte {
	t.Helper()
	key, _ := newKey(t)
	return []byte(knownhosts.Line([]string{address}, public(t, key)) + "\n")
}

func newKey(t testing.TB) (ed25519.PrivateKey, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(block)
}

func public(t testing.TB, key ed25519.PrivateKey) ssh.PublicKey {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer.PublicKey()
}
