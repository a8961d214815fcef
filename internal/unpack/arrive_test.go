// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBytesOfUnknownNumberAreStoppedAtTheLimit(t *testing.T) {
	budget := NewBudget(Limits{CompressedBytes: 10, Layers: 2})
	if got, err := io.ReadAll(budget.Arriving(strings.NewReader("12345"), -1)); err != nil || string(got) != "12345" {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := io.ReadAll(budget.Arriving(strings.NewReader("123456"), -1)); overLimit(err) != "compressed-bytes" {
		t.Errorf("the 11th byte: got %v", err)
	}
	if _, err := io.ReadAll(budget.Arriving(strings.NewReader(""), -1)); overLimit(err) != "layers" {
		t.Errorf("the third layer: got %v", err)
	}
}

func TestBytesThatAreAnnouncedToBeTooManyAreNotRead(t *testing.T) {
	_, err := io.ReadAll(NewBudget(Limits{CompressedBytes: 10}).Arriving(iotest.ErrReader(errors.New("read")), 11))
	if overLimit(err) != "compressed-bytes" {
		t.Errorf("got %v", err)
	}
}

// overLimit gives the name of the limit that an error is about.
func overLimit(err error) string {
	if over, ok := errors.AsType[*LimitError](err); ok {
		return over.Limit
	}
	return ""
}
