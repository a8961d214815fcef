// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"iter"
)

// Fields that may follow an entry of a zip archive.
const (
	zip64Field       = 0x0001
	unicodePathField = 0x7075
)

// zipFields gives the extra fields of an entry. What is no field ends them: some
// writers pad with zeros.
func zipFields(extra []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(extra) >= 4 {
			size := int(little.Uint16(extra[2:]))
			if len(extra) < 4+size || !yield(little.Uint16(extra), extra[4:4+size]) {
				return
			}
			extra = extra[4+size:]
		}
	}
}

// zip64Fields replaces numbers that had no room in their own place. They come in
// this order, those that had room left out.
func zip64Fields(extra []byte, numbers ...*int64) error {
	for id, field := range zipFields(extra) {
		if id != zip64Field {
			continue
		}
		for _, number := range numbers {
			if *number != maxUint32 {
				continue
			}
			if len(field) < 8 {
				return errors.New("the zip64 field of the entry is cut off")
			}
			*number, field = int64(little.Uint64(field)), field[8:]
		}
		break
	}
	for _, number := range numbers {
		if *number < 0 {
			return errors.New("a number of the entry is too large")
		}
	}
	return nil
}

// otherName tells whether there is a field with another name for the entry:
// readers that know the field would see that one.
func otherName(extra, name []byte) bool {
	for id, field := range zipFields(extra) {
		if id == unicodePathField && (len(field) < 5 || string(field[5:]) != string(name)) {
			return true
		}
	}
	return false
}
