// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/verify"
)

// MethodKey is the method of verdicts on signatures by a key.
const MethodKey = "cosign key"

// ByKeys asks for a signature by one of the keys.
func ByKeys(keys []Key) (verify.Verifier, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key is given")
	}
	return &byKeys{keys: keys}, nil
}

type byKeys struct{ keys []Key }

// Method is MethodKey.
func (v *byKeys) Method() string { return MethodKey }

// Wanted names the keys.
func (v *byKeys) Wanted() string {
	var names []string
	for _, key := range v.keys[:min(len(v.keys), 3)] {
		names = append(names, key.Fingerprint)
	}
	if more := len(v.keys) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("one of %d others", more))
	}
	return "cosign, by the key " + strings.Join(names, " or ")
}

// Query says where cosign puts signatures.
func (v *byKeys) Query(content digest.Digest) verify.Query { return query(content) }

// Judge looks at one signature.
func (v *byKeys) Judge(_ context.Context, content digest.Digest, attached verify.Attachment) (*verify.Verdict, error) {
	switch kindOf(attached) {
	case kindSimple:
		return v.simple(content, attached)
	case kindBundle:
		return v.bundle(content, attached)
	default:
		return nil, nil
	}
}

func (v *byKeys) simple(content digest.Digest, attached verify.Attachment) (*verify.Verdict, error) {
	read, err := parseSimple(content, attached)
	if err != nil {
		return nil, err
	}
	for _, key := range v.keys {
		if key.signed(read.payload, read.signature) {
			return &verify.Verdict{Signer: key.Fingerprint}, nil
		}
	}
	return nil, verify.Invalid("it is not by this key, or not over this payload")
}
