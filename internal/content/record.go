// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

// A record is lines of text that end with the digest of the lines before, so
// that a torn or changed one is never believed.
const (
	layerHeader  = "rukpak layer 1"
	recipeHeader = "rukpak recipe 1"
	endPrefix    = "end\t"
)

// writeLayer writes the record of a layer.
func writeLayer(w io.Writer, layer Layer) error {
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum), 32<<10)
	_, _ = fmt.Fprintf(buffered, "%s\n%s\n%s\n%d\n", layerHeader, layer.Key.Digest, layer.Key.Format, layer.Packed) // a failure shows in Flush
	if err := writeEntries(buffered, layer.Entries); err != nil {
		return err
	}
	return writeEnd(w, sum)
}

// writeRecipe writes the record of which layers gave which tree.
func writeRecipe(w io.Writer, tree digest.Digest, keys []LayerKey) error {
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	if _, err := fmt.Fprintf(both, "%s\n%s\n%s\n", recipeHeader, tree, joinKeys(keys)); err != nil {
		return err
	}
	return writeEnd(w, sum)
}

func writeEnd(w io.Writer, sum hash.Hash) error {
	_, err := fmt.Fprintf(w, "%s%x\n", endPrefix, sum.Sum(nil))
	return err
}

func joinKeys(keys []LayerKey) string {
	lines := make([]string, len(keys))
	for i, k := range keys {
		lines[i] = k.String()
	}
	return strings.Join(lines, "\n")
}

// recordReader gives the lines of a record and checks its end.
type recordReader struct {
	lines *lineReader
	sum   hash.Hash
}

// newRecordReader reads the first line, which must be header.
func newRecordReader(r io.Reader, header string) (*recordReader, error) {
	rr := &recordReader{lines: newLineReader(r), sum: sha256.New()}
	first, err := rr.next()
	if err != nil || first != header {
		return nil, errors.New("it is not what its place says")
	}
	return rr, nil
}

// next gives io.EOF only after an end that fits.
func (r *recordReader) next() (string, error) {
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		return "", errors.New("its end is missing")
	}
	if err != nil {
		return "", err
	}
	if end, ok := bytes.CutPrefix(line, []byte(endPrefix)); ok {
		if string(end) != hex.EncodeToString(r.sum.Sum(nil)) {
			return "", errors.New("its digest is wrong")
		}
		if _, err := r.lines.next(); !errors.Is(err, io.EOF) {
			return "", errors.New("something follows its end")
		}
		return "", io.EOF
	}
	r.sum.Write(line)
	r.sum.Write([]byte{'\n'})
	return string(line), nil
}

// readLayer is the inverse of writeLayer. want is the key that it must have.
func readLayer(r io.Reader, want LayerKey) (Layer, error) {
	rr, err := newRecordReader(r, layerHeader)
	if err != nil {
		return Layer{}, err
	}
	var head [3]string
	for i := range head {
		if head[i], err = rr.next(); err != nil {
			return Layer{}, err
		}
	}
	layer := Layer{Key: LayerKey{Digest: digest.Digest(head[0]), Format: head[1]}}
	if layer.Packed, err = strconv.ParseInt(head[2], 10, 64); err != nil || layer.Packed < 0 {
		return Layer{}, errors.New("bad size")
	}
	if layer.Key != want {
		return Layer{}, fmt.Errorf("it is that of %s", layer.Key)
	}
	for {
		line, err := rr.next()
		if errors.Is(err, io.EOF) {
			return layer, nil
		}
		if err != nil {
			return Layer{}, err
		}
		e, err := parseEntry(line)
		if err != nil {
			return Layer{}, err
		}
		layer.Entries = append(layer.Entries, e)
	}
}

// readRecipe gives the tree and the keys of its layers.
func readRecipe(r io.Reader) (digest.Digest, []LayerKey, error) {
	rr, err := newRecordReader(r, recipeHeader)
	if err != nil {
		return "", nil, err
	}
	tree, err := rr.next()
	if err != nil {
		return "", nil, err
	}
	if err := digest.Digest(tree).Validate(); err != nil {
		return "", nil, err
	}
	var keys []LayerKey
	for {
		line, err := rr.next()
		if errors.Is(err, io.EOF) {
			return digest.Digest(tree), keys, nil
		}
		if err != nil {
			return "", nil, err
		}
		packed, format, _ := strings.Cut(line, " ")
		keys = append(keys, LayerKey{Digest: digest.Digest(packed), Format: format})
	}
}
