// SPDX-License-Identifier: Apache-2.0

package depot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/objects"
)

// First lines. Another format has another line; what has none of these is damaged.
const (
	treeHeader  = "rukpak shared tree 1"
	layerHeader = "rukpak shared layer 1"
	packHeader  = "rukpak shared pack 1"
)

func treeName(tree digest.Digest) string { return "trees/" + tree.Encoded() }

// layerName hides the key, which may hold names of namespaces.
func layerName(key content.LayerKey) string {
	return fmt.Sprintf("layers/%x", sha256.Sum256([]byte(key.String())))
}

// head is what a record says of other objects:
//
//	rukpak shared tree 1
//	name	packs/...         one line each, also of layers
//	head	<SHA-256 of the lines above>
//
// What follows is the record itself, as package content writes it.
type head struct {
	packs  []string // names
	layers []string
}

func (h head) refs() []string { return slices.Concat(h.packs, h.layers) }

func (h head) encode(header string) []byte {
	var text bytes.Buffer
	text.WriteString(header + "\n")
	for _, name := range h.refs() {
		text.WriteString("name\t" + name + "\n")
	}
	fmt.Fprintf(&text, "head\t%x\n", sha256.Sum256(text.Bytes()))
	return text.Bytes()
}

var errHead = errors.New("its head is not one of this store")

// readHead is the inverse of encode. It leaves r behind the head.
func readHead(r *bufio.Reader, header string) (head, error) {
	sum := sha256.New()
	first, err := readLine(r)
	if err != nil {
		return head{}, err
	}
	if first != header {
		return head{}, errHead
	}
	_, _ = fmt.Fprintln(sum, first) // a hash takes all
	var h head
	for {
		line, err := readLine(r)
		if err != nil {
			return head{}, err
		}
		field, value, _ := strings.Cut(line, "\t")
		switch field {
		case "head":
			if value != hex.EncodeToString(sum.Sum(nil)) {
				return head{}, errHead
			}
			return h, nil
		case "name":
			if !objects.IsName(value) {
				return head{}, errHead
			}
			if strings.HasPrefix(value, "packs/") {
				h.packs = append(h.packs, value)
			} else {
				h.layers = append(h.layers, value)
			}
		default:
			return head{}, errHead
		}
		_, _ = fmt.Fprintln(sum, line)
	}
}

// readLine gives a line without its end. A line that is cut off is an error.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		return "", io.ErrUnexpectedEOF
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errHead
	}
	if err != nil {
		return "", err
	}
	return string(line[:len(line)-1]), nil
}

// file is one in a pack.
type file struct {
	sum  content.Sum
	size int64
}

// pack is a set of files:
//
//	rukpak shared pack 1
//	<sha256>	<size>        one line each, sorted by digest
//	                        an empty line
//	the bytes of the files, one after the other
type pack struct {
	name  string
	files []file
}

// Sizes of packs. Many small files are one request instead of one each; a large
// one is alone, so that versions which share it share it here too.
const (
	packSize  = 32 << 20
	largeFile = 4 << 20
)

// packsOf distributes the files of entries. The same files always give the same
// packs, whoever does it.
func packsOf(files map[content.Sum]int64) []pack {
	sorted := make([]file, 0, len(files))
	for sum, size := range files {
		sorted = append(sorted, file{sum, size})
	}
	slices.SortFunc(sorted, func(a, b file) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	var packs []pack
	var small []file
	var room int64 = packSize
	for _, f := range sorted {
		if f.size >= largeFile {
			packs = append(packs, newPack([]file{f}))
			continue
		}
		if f.size > room {
			packs, small, room = append(packs, newPack(small)), nil, packSize
		}
		small, room = append(small, f), room-f.size
	}
	if len(small) > 0 {
		packs = append(packs, newPack(small))
	}
	return packs
}

func newPack(files []file) pack {
	return pack{name: fmt.Sprintf("packs/%x", sha256.Sum256(encodeIndex(files))), files: files}
}

func encodeIndex(files []file) []byte {
	text := make([]byte, 0, 80*len(files))
	for _, f := range files {
		text = hex.AppendEncode(text, f.sum[:])
		text = append(text, '\t')
		text = strconv.AppendInt(text, f.size, 10)
		text = append(text, '\n')
	}
	return text
}

// body gives the bytes of a pack, whose files are on a disk.
func (p pack) body(disk *content.Disk) objects.Body {
	front := packHeader + "\n" + string(encodeIndex(p.files)) + "\n"
	size := int64(len(front))
	for _, f := range p.files {
		size += f.size
	}
	return objects.Body{Size: size, Open: func() (io.ReadCloser, error) {
		return &packReader{now: io.NopCloser(strings.NewReader(front)), left: p.files, disk: disk}, nil
	}}
}

// packReader reads the front of a pack and then its files, which are verified on
// the way.
type packReader struct {
	now  io.ReadCloser
	left []file
	disk *content.Disk
}

func (r *packReader) Read(p []byte) (int, error) {
	for {
		n, err := r.now.Read(p)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if len(r.left) == 0 {
			return 0, io.EOF
		}
		next, err := r.disk.OpenFile(r.left[0].sum, r.left[0].size)
		if err != nil {
			return 0, err
		}
		_ = r.now.Close() // it was only read
		r.now, r.left = next, r.left[1:]
	}
}

// Close closes the file that is being read.
func (r *packReader) Close() error { return r.now.Close() }

var errIndex = errors.New("its index is not that of its name")

// readIndex gives the files of a pack and leaves r at the first byte of them.
func readIndex(r *bufio.Reader, name string) ([]file, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if line != packHeader {
		return nil, errIndex
	}
	var files []file
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		sum, size, _ := strings.Cut(line, "\t")
		f, err := parseFile(sum, size)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if newPack(files).name != name {
		return nil, errIndex
	}
	return files, nil
}

func parseFile(sum, size string) (f file, err error) {
	if f.size, err = strconv.ParseInt(size, 10, 64); err != nil || f.size < 0 || len(sum) != 2*len(f.sum) {
		return file{}, errIndex
	}
	if _, err := hex.Decode(f.sum[:], []byte(sum)); err != nil {
		return file{}, errIndex
	}
	return f, nil
}

// filesOf gives each file of entries once.
func filesOf(entries []content.Entry) map[content.Sum]int64 {
	files := map[content.Sum]int64{}
	for i := range entries {
		if entries[i].Kind == content.File {
			files[entries[i].Sum] = entries[i].Size
		}
	}
	return files
}
