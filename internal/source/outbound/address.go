// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"fmt"
	"net/netip"
	"syscall"
)

// forbidden are addresses that no content is at: link-local ones, and those of
// the metadata services of clouds.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"),  // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("ff00::/8"),
}

// inside are networks that a public server has no business to send us to.
var inside = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("::/127"), // unspecified and loopback
	netip.MustParsePrefix("fc00::/7"),
}

// embedded are prefixes of IPv6 addresses that end in an IPv4 address, to which
// a gateway carries them.
var embedded = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("::/96"),
}

// AddressError says that an address is not connected to.
type AddressError struct {
	Address netip.Addr
	problem string
}

// Error names the address and the reason.
func (e *AddressError) Error() string {
	return fmt.Sprintf("it is at the address %s, %s", e.Address, e.problem)
}

// Private tells whether an address is on the loopback or in a private network.
func Private(address netip.Addr) bool { return among(address, inside) }

func among(address netip.Addr, prefixes []netip.Prefix) bool {
	address = plain(address)
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// plain gives the IPv4 address that an IPv6 address stands for.
func plain(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	for _, prefix := range embedded {
		bytes := address.As16()
		ipv4 := netip.AddrFrom4([4]byte(bytes[12:]))
		if address.Is6() && prefix.Contains(address) && ipv4.Compare(netip.AddrFrom4([4]byte{0, 0, 0, 1})) > 0 {
			return ipv4
		}
	}
	return address
}

// check judges an address before it is connected to.
func check(address netip.Addr, public bool) error {
	switch {
	case among(address, forbidden):
		return &AddressError{address, "which is link-local or that of a cloud's metadata service: no content is fetched from there"}
	case public && Private(address):
		return &AddressError{address, "which is not public, while the server that led there is: such an answer is not followed"}
	}
	return nil
}

// control gives what a dialer calls with each address before it connects.
func control(public bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %q: %w", address, err)
		}
		return check(to.Addr(), public)
	}
}
