// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks on the terminal; nothing but y or yes means yes.
func (s *session) confirm(ctx context.Context, question string) (bool, error) {
	_, _ = fmt.Fprintf(s.ErrOut, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(s.In).ReadString('\n')
		answers <- answer
	}()
	select {
	case <-ctx.Done():
		s.say("")
		return false, ctx.Err()
	case answer := <-answers:
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes", nil
	}
}
