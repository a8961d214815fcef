// SPDX-License-Identifier: Apache-2.0

package squashfs

import "errors"

var errLZO = errors.New("its lzo codes are broken")

// unpackLZO decompresses a block of LZO1X: literals, and matches that copy
// earlier bytes. What a code means depends on how many literals came just
// before it.
func unpackLZO(packed []byte, most int64) ([]byte, error) {
	l := &lzo{in: packed, out: make([]byte, 0, most), most: int(most)}
	if err := l.run(); err != nil {
		return nil, broken(err)
	}
	return l.out, nil
}

type lzo struct {
	in   []byte
	out  []byte
	most int
}

func (l *lzo) next() (int, error) {
	if len(l.in) == 0 {
		return 0, errLZO
	}
	b := l.in[0]
	l.in = l.in[1:]
	return int(b), nil
}

// long gives a length that did not fit into the bits of its code.
func (l *lzo) long(bits, mask int) (int, error) {
	if bits != 0 {
		return bits, nil
	}
	length := mask
	for {
		b, err := l.next()
		if err != nil || length > l.most {
			return 0, errLZO
		}
		if b != 0 {
			return length + b, nil
		}
		length += 255
	}
}

func (l *lzo) literals(n int) error {
	if n > len(l.in) || n > l.most-len(l.out) {
		return errLZO
	}
	l.out = append(l.out, l.in[:n]...)
	l.in = l.in[n:]
	return nil
}

func (l *lzo) match(distance, length int) error {
	from := len(l.out) - distance
	if from < 0 || length > l.most-len(l.out) {
		return errLZO
	}
	for i := range length { // may read what it wrote
		l.out = append(l.out, l.out[from+i])
	}
	return nil
}

func (l *lzo) run() error {
	before := 0 // literals just before the code; 4 for more
	if len(l.in) > 0 && l.in[0] > 17 {
		n := int(l.in[0]) - 17
		l.in = l.in[1:]
		if err := l.literals(n); err != nil {
			return err
		}
		before = min(n, 4)
	}
	for {
		code, err := l.next()
		if err != nil {
			return err
		}
		if code < 16 && before == 0 {
			n, err := l.long(code, 15)
			if err == nil {
				err = l.literals(n + 3)
			}
			if err != nil {
				return err
			}
			before = 4
			continue
		}
		distance, length, trailing, err := l.code(code, before)
		if err != nil {
			return err
		}
		if distance == 0 {
			return nil
		}
		if err := l.match(distance, length); err != nil {
			return err
		}
		if err := l.literals(trailing); err != nil {
			return err
		}
		before = trailing
	}
}

// code reads the rest of a match. A distance of 0 is the end.
func (l *lzo) code(code, before int) (distance, length, trailing int, err error) {
	switch {
	case code >= 64:
		high, err := l.next()
		return high<<3 + code>>2&7 + 1, code>>5 + 1, code & 3, err
	case code >= 32:
		length, err = l.long(code&31, 31)
		if err != nil {
			return 0, 0, 0, err
		}
		low, trailing, err := l.pair()
		return low + 1, length + 2, trailing, err
	case code >= 16:
		length, err = l.long(code&7, 7)
		if err != nil {
			return 0, 0, 0, err
		}
		low, trailing, err := l.pair()
		distance = (code&8)<<11 + low
		if distance == 0 {
			return 0, 0, 0, err
		}
		return distance + 1<<14, length + 2, trailing, err
	}
	high, err := l.next()
	distance = high<<2 + code>>2 + 1
	if before == 4 {
		return distance + 1<<11, 3, code & 3, err
	}
	return distance, 2, code & 3, err
}

// pair reads two bytes: a distance, and how many literals follow the match.
func (l *lzo) pair() (distance, trailing int, err error) {
	low, err := l.next()
	if err != nil {
		return 0, 0, err
	}
	high, err := l.next()
	return high<<6 + low>>2, low & 3, err
}
