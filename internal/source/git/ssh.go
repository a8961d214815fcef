// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"rukpak.io/rukpak/internal/source/outbound"
)

const defaultUser = "git"

// hostKeyError says that a server has not shown to be the one that is meant.
type hostKeyError struct{ problem string }

func (e *hostKeyError) Error() string { return e.problem }

// loginError says that a server of SSH lets nobody in with what was shown.
type loginError struct {
	user  string
	shown string
}

func (e *loginError) Error() string {
	return fmt.Sprintf("the server does not let the user %q in; shown was %s", e.user, e.shown)
}

// overSSH is a conversation with one git-upload-pack process.
type overSSH struct {
	fetcher     *Fetcher
	at          address
	credentials Credentials
	onlyPublic  bool   // where the server may be
	scratch     string // folder for a file, which the library for known_hosts wants

	ctx        context.Context // of the connection: a stall ends it
	cancel     context.CancelCauseFunc
	clock      *time.Timer
	seenPublic bool
	client     *ssh.Client
	session    *ssh.Session
	in         io.WriteCloser
	out        io.Reader
	said       excerpt // what the process complains of
}

var _ conversation = (*overSSH)(nil)

func (c *overSSH) public() bool { return c.seenPublic }

func (c *overSSH) close() {
	if c.in != nil {
		c.clock.Reset(c.fetcher.options.StallTimeout)
		_, _ = io.WriteString(c.in, flushPacket) // a polite end; the connection is cut anyway
		_ = c.in.Close()
	}
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.cancel != nil {
		c.cancel(nil)
		c.clock.Stop()
	}
}

// begin connects, makes sure of the server, and starts the process.
func (c *overSSH) begin(ctx context.Context) (io.Reader, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	stall := c.fetcher.options.StallTimeout
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.clock = time.AfterFunc(stall, func() { c.cancel(&outbound.StallError{After: stall}) })
	defer c.clock.Stop()
	if err := c.connect(config); err != nil {
		return nil, c.explain(err)
	}
	if err := c.start(); err != nil {
		return nil, c.explain(err)
	}
	return c, nil
}

func (c *overSSH) connect(config *ssh.ClientConfig) error {
	connection, err := outbound.Dialer(c.onlyPublic).DialContext(c.ctx, "tcp", c.at.hostPort())
	if err != nil {
		return err
	}
	if at, err := netip.ParseAddrPort(connection.RemoteAddr().String()); err == nil {
		c.seenPublic = !outbound.Private(at.Addr())
	}
	context.AfterFunc(c.ctx, func() { _ = connection.Close() }) // whatever is being read ends then
	wrong := config.HostKeyCallback
	var refused error
	config.HostKeyCallback = func(host string, remote net.Addr, key ssh.PublicKey) error {
		refused = wrong(host, remote, key)
		return refused
	}
	secured, channels, requests, err := ssh.NewClientConn(connection, c.at.hostPort(), config)
	if err != nil {
		_ = connection.Close()
		switch {
		case refused != nil:
			return refused
		case strings.Contains(err.Error(), "unable to authenticate"):
			return &loginError{config.User, c.shown()}
		}
		return err
	}
	c.client = ssh.NewClient(secured, channels, requests)
	return nil
}

// start runs git-upload-pack on the server.
func (c *overSSH) start() (err error) {
	if c.session, err = c.client.NewSession(); err != nil {
		return err
	}
	_ = c.session.Setenv("GIT_PROTOCOL", "version=2") // servers that do not accept it speak version 0
	c.session.Stderr = &c.said
	if c.in, err = c.session.StdinPipe(); err != nil {
		return err
	}
	if c.out, err = c.session.StdoutPipe(); err != nil {
		return err
	}
	path := c.at.plainPath()
	if strings.HasPrefix(path, "/~") {
		path = path[1:]
	}
	return c.session.Start(service + " '" + strings.ReplaceAll(path, "'", `'\''`) + "'")
}

// ask writes a request to the process.
func (c *overSSH) ask(_ context.Context, request []byte) (io.Reader, error) {
	c.clock.Reset(c.fetcher.options.StallTimeout)
	defer c.clock.Stop()
	if _, err := c.in.Write(request); err != nil {
		return nil, c.explain(err)
	}
	return c, nil
}

// Read gives what the process says. If it ends there, what it complained of is
// the error.
func (c *overSSH) Read(p []byte) (int, error) {
	c.clock.Reset(c.fetcher.options.StallTimeout)
	defer c.clock.Stop()
	n, err := c.out.Read(p)
	if errors.Is(err, io.EOF) {
		_ = c.session.Wait() // how it ended tells less than what it said
		if said := c.said.String(); said != "" && context.Cause(c.ctx) == nil {
			return n, &serverError{said}
		}
	}
	if err != nil && (context.Cause(c.ctx) != nil || !errors.Is(err, io.EOF)) {
		return n, c.explain(err)
	}
	return n, err
}

func (c *overSSH) explain(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		err = cause
	}
	return &reachError{c.at.host, err}
}

func (c *overSSH) shown() string {
	switch {
	case len(c.credentials.Identity) > 0:
		return "the private key in the Secret's key " + keyIdentity
	case c.credentials.Password != "":
		return "the password in the Secret's key " + keyPassword
	}
	return "nothing: give a private key in the key " + keyIdentity + " of the Secret that secretRef names"
}

// config says as whom to come and whom to trust.
func (c *overSSH) config() (*ssh.ClientConfig, error) {
	config := &ssh.ClientConfig{User: cmp.Or(c.at.user, c.credentials.Username, defaultUser)}
	switch {
	case len(c.credentials.Identity) > 0:
		signer, err := c.credentials.signer()
		if err != nil {
			return nil, &hostKeyError{err.Error()}
		}
		config.Auth = []ssh.AuthMethod{ssh.PublicKeys(signer)}
	case c.credentials.Password != "":
		config.Auth = []ssh.AuthMethod{ssh.Password(c.credentials.Password)}
	}
	known, err := c.knownHosts()
	if err != nil {
		return nil, err
	}
	config.HostKeyAlgorithms = known.HostKeyAlgorithms(c.at.hostPort())
	check := known.HostKeyCallback()
	config.HostKeyCallback = func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := check(host, remote, key)
		switch {
		case err == nil:
			return nil
		case knownhosts.IsHostUnknown(err):
			return c.unknownHost()
		}
		return &hostKeyError{fmt.Sprintf("the server shows the host key %s (%s), which is not the one that the Secret's key %s has for %s: "+
			"it may be another server", ssh.FingerprintSHA256(key), key.Type(), keyKnownHosts, c.at.host)}
	}
	return config, nil
}

func (c *overSSH) unknownHost() error {
	return &hostKeyError{fmt.Sprintf("no host key of %s is known: put its line of a known_hosts file (ssh-keyscan prints it; compare it with what "+
		"the server's operator publishes) into the key %s of the Secret that secretRef names", c.at.host, keyKnownHosts)}
}

func (c *overSSH) knownHosts() (*knownhosts.HostKeyDB, error) {
	if len(c.credentials.KnownHosts) == 0 {
		return nil, c.unknownHost()
	}
	name := filepath.Join(c.scratch, keyKnownHosts)
	if err := os.WriteFile(name, c.credentials.KnownHosts, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(name) //nolint:errcheck // the folder is removed too
	known, err := knownhosts.NewDB(name)
	if err != nil {
		return nil, &hostKeyError{fmt.Sprintf("the Secret's key %s cannot be read: %s", keyKnownHosts, strings.ReplaceAll(err.Error(), name, keyKnownHosts))}
	}
	return known, nil
}

// excerpt keeps the first part of what is written to it.
type excerpt struct{ text []byte }

const maxSaid = 2048

func (t *excerpt) Write(p []byte) (int, error) {
	t.text = append(t.text, p[:min(len(p), maxSaid-len(t.text))]...)
	return len(p), nil
}

func (t *excerpt) String() string { return strings.TrimSpace(string(t.text)) }
