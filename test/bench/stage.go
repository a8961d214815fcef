// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/devenv"
)

// stage is a whole RukPak: a control plane with its controllers, a registry, and the manager as a process.
type stage struct {
	env      *devenv.Env
	client   client.WithWatch // of the administrator
	user     string           // whom the API server takes the administrator for
	server   *apiServer
	prepared bool // namespace, account and classes are there
	filled   int  // number of small instances
}

// environment starts the stage when it is first needed.
func (b *bench) environment(ctx context.Context) (*stage, error) {
	if b.stage != nil {
		return b.stage, nil
	}
	b.say("start an environment with a manager")
	env, err := devenv.Start(ctx, devenv.Options{
		Progress:    os.Stderr,
		ManagerArgs: []string{"--limit-files=200000"}, // folders count, too
	})
	if err != nil {
		return nil, err
	}
	b.stage = &stage{env: env}
	return b.stage, b.stage.connect(ctx)
}

func (s *stage) connect(ctx context.Context) (err error) {
	config := s.env.Cluster.Config()
	config.WarningHandler = rest.NoWarnings{}
	if s.client, err = client.NewWithWatch(config, client.Options{Scheme: kinds()}); err != nil {
		return err
	}
	user, err := s.env.Cluster.Kubectl(ctx, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if err != nil {
		return err
	}
	s.user = strings.TrimSpace(user)
	if s.server, err = newAPIServer(config); err != nil {
		return err
	}
	return s.countManager(ctx)
}

// stop ends the stage, if it was started.
func (s *stage) stop() error {
	if s == nil {
		return nil
	}
	return s.env.Stop()
}

// explain adds what the manager said last to an error.
func (s *stage) explain(err error) error {
	if err == nil {
		return nil
	}
	log, readErr := os.ReadFile(s.env.ManagerLog())
	if readErr != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return fmt.Errorf("%w; the manager said last:\n%s", err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
}
