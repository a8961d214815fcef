// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/internal/testenv"
)

// cluster has RukPak's kinds, and nobody who acts on them.
var cluster = testenv.Shared{CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // clients of controller-runtime complain without one
	os.Exit(cluster.Main(m))
}
