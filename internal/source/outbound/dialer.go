// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net"
	"time"
)

// Dialer gives a dialer for what is not HTTP, with the same rules for
// addresses. public makes it refuse those that are not.
func Dialer(public bool) *net.Dialer {
	return &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: control(public)}
}
