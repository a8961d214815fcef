// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
)

func (s *session) push(ctx context.Context, dir, ref string, insecure bool) (pushed, error) {
	return pushed{}, errors.New("push is not there yet")
}

func (s *session) pull(ctx context.Context, ref, dir string, insecure bool) (pulled, error) {
	return pulled{}, errors.New("pull is not there yet")
}
