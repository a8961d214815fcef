// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net/netip"
	"testing"
)

func TestAddressesThatAreNotConnectedTo(t *testing.T) {
	for text, tc := range map[string]struct{ never, private bool }{
		"1.1.1.1":                {false, false},
		"2606:4700::1111":        {false, false},
		"10.1.2.3":               {false, true},
		"172.31.0.1":             {false, true},
		"172.32.0.1":             {false, false},
		"192.168.0.1":            {false, true},
		"100.64.0.1":             {false, true},
		"127.0.0.1":              {false, true},
		"0.0.0.0":                {false, true},
		"::":                     {false, true},
		"::1":                    {false, true},
		"fd00::1":                {false, true},
		"169.254.169.254":        {true, false},
		"169.254.0.1":            {true, false},
		"fe80::1":                {true, false},
		"fe80::1%eth0":           {true, false},
		"fd00:ec2::254":          {true, true},
		"fd20:ce::254":           {true, true},
		"100.100.100.200":        {true, true},
		"168.63.129.16":          {true, false},
		"::ffff:169.254.169.254": {true, false},
		"::ffff:10.0.0.1":        {false, true},
		"64:ff9b::a9fe:a9fe":     {true, false},
		"64:ff9b::a00:1":         {false, true},
		"::169.254.169.254":      {true, false},
		"224.0.0.1":              {true, false},
		"ff02::1":                {true, false},
	} {
		address := netip.MustParseAddr(text)
		if got := check(address, false) != nil; got != tc.never {
			t.Errorf("%s: refused %v, want %v", text, got, tc.never)
		}
		if got := check(address, true) != nil; got != (tc.never || tc.private) {
			t.Errorf("%s: refused after a public server %v, want %v", text, got, tc.never || tc.private)
		}
		if got := Private(address); got != tc.private {
			t.Errorf("%s: private %v, want %v", text, got, tc.private)
		}
	}
}

func FuzzAddresses(f *testing.F) {
	for _, text := range []string{"1.1.1.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1%x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		if (check(address, false) != nil) != (check(address.Unmap(), false) != nil) {
			t.Errorf("%s: the two forms of an address are judged differently", address)
		}
		if address.IsLinkLocalUnicast() && check(address, false) == nil {
			t.Errorf("%s: a link-local address is connected to", address)
		}
		if (address.IsLoopback() || address.IsPrivate() || address.IsUnspecified()) && !Private(address) {
			t.Errorf("%s: an inside address counts as public", address)
		}
	})
}
