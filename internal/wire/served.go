// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/provisioner"
)

// served finds provisioners: those of this manager first, so that nobody can take their place, and else whoever comes for
// work of that ID.
type served struct {
	own map[string]provisioner.Provisioner
	*remote.Broker
}

func (s served) Find(id string) provisioner.Provisioner {
	if own, ok := s.own[id]; ok {
		return own
	}
	return s.Provisioner(id)
}
