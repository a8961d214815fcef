// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"
)

func TestAStreamOfUnknownLengthBecomesAFile(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, length := range []int{0, 1, smallFile, 3*smallFile + 7} {
		data := bytes.Repeat([]byte("x"), length)
		for range 2 { // the second time the store has it
			sum, size, err := s.AddStream(iotest.HalfReader(bytes.NewReader(data)))
			if err != nil || size != int64(length) || sum != Sum(sha256.Sum256(data)) {
				t.Fatalf("%d bytes: got %d bytes, %s, %v", length, size, sum, err)
			}
		}
		file, size, ok := s.OpenFile(Sum(sha256.Sum256(data)))
		if !ok || size != int64(length) {
			t.Fatalf("%d bytes: ok %v, size %d", length, ok, size)
		}
		if got, err := io.ReadAll(file); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: read %d, %v", length, len(got), err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, ok := s.OpenFile(Sum{1}); ok {
		t.Error("a file that was never stored is there")
	}
}

func TestAStreamThatBreaksLeavesNothing(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken := errors.New("broken")
	if _, _, err := s.AddStream(io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, _, ok := s.OpenFile(Sum(sha256.Sum256([]byte("half")))); ok {
		t.Error("the half that came counts as a file")
	}
}

func TestAStreamSurvivesACollectionUntilTheSessionEnds(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := s.AddStream(bytes.NewReader([]byte("kept")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Collect(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !d.hasBlob(sum, 4) {
		t.Error("it was collected while the session used it")
	}
	s.Close()
	if _, err := d.Collect(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if d.hasBlob(sum, 4) {
		t.Error("it was kept although nothing names it")
	}
}

func TestADamagedFileIsFoundWhenItWasRead(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sum, _, err := s.AddStream(bytes.NewReader([]byte("whole")))
	if err != nil {
		t.Fatal(err)
	}
	path := d.blobPath(sum)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, _, ok := s.OpenFile(sum)
	if !ok {
		t.Fatal("it is gone")
	}
	defer file.Close() //nolint:errcheck // nothing was written
	_, err = io.ReadAll(file)
	if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
		t.Errorf("got %v", err)
	}
	if _, _, ok := s.OpenFile(sum); ok {
		t.Error("it is still taken for good")
	}
}
