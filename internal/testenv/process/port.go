// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// The ports given out lie below the range from which Linux takes the ports of outgoing connections (32768 and up),
// so that a server can be stopped and started again on its port.
const (
	firstPort = 18000
	lastPort  = 31999
	portTries = 200
)

// Port is a TCP port on the loopback address that no other process using this package gets until it is released
// or this process ends.
type Port struct {
	Number int
	lock   *os.File
}

// ReservePort returns a free port. Test packages run at the same time in processes of their own: a lock file per
// port, held by the process, keeps them apart also in the time between the reservation and the server's start.
func ReservePort() (*Port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("rukpak-ports.%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for range portTries {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		if port, ok := tryPort(dir, number); ok {
			return port, nil
		}
	}
	return nil, fmt.Errorf("no free port on 127.0.0.1 between %d and %d in %d tries", firstPort, lastPort, portTries)
}

func tryPort(dir string, number int) (*Port, bool) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		port := &Port{Number: number, lock: lock}
		if listener, err := net.Listen("tcp", port.Address()); err == nil {
			_ = listener.Close()
			return port, true
		}
	}
	_ = lock.Close()
	return nil, false
}

// Address returns "127.0.0.1:<number>".
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release gives the port back.
func (p *Port) Release() { _ = p.lock.Close() }
