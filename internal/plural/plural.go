// SPDX-License-Identifier: Apache-2.0

// Package plural puts numbers before nouns, in messages of all steps of the flow.
package plural

import "strconv"

// Of is "1 object", "2 objects": the noun is one that takes an s.
func Of[N int | int32 | int64](count N, noun string) string {
	text := strconv.FormatInt(int64(count), 10) + " " + noun
	if count != 1 {
		text += "s"
	}
	return text
}

// All is what a sentence about all of them begins with: "all 2 objects are", "the 1 object is".
func All(count int, noun string) string {
	if count == 1 {
		return "the 1 " + noun + " is"
	}
	return "all " + Of(count, noun) + " are"
}
