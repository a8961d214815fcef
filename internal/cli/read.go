// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
)

// maxInput is the largest file that is read for a flag: more than an object of the API may hold.
const maxInput = 1 << 20

func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("it is longer than %d bytes", maxInput)
	}
	return text, nil
}
