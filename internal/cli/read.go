// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
)

// maxInput is the largest file that is read for a flag: more than an object of the API may hold.
const maxInput = 1 << 20

func readAll(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return text, nil
}
