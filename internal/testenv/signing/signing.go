// SPDX-License-Identifier: Apache-2.0

// Package signing makes signatures as cosign and notation make them, and pushes
// them where those put them, for tests of the step between source and unpack.
// Keys, authorities and logs are those of the test; the formats, the
// cryptography and the registry are real.
package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
)

// Types and annotations, spelt here anew so that a typing error in what is
// tested shows.
const (
	SimpleType          = "application/vnd.dev.cosign.simplesigning.v1+json"
	BundleType          = "application/vnd.dev.sigstore.bundle.v0.3+json"
	SignPredicate       = "https://sigstore.dev/cosign/sign/v1"
	AnnotationSignature = "dev.cosignproject.cosign/signature"
)

// Key makes a key.
func Key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// PEM gives the public half of a key.
func PEM(t testing.TB, key crypto.Signer) string {
	t.Helper()
	encoded, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: encoded}))
}

// Payload is what cosign signs for content.
func Payload(content digest.Digest) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, content)
}

// Blob is one layer of an artifact.
type Blob struct {
	MediaType   string
	Data        []byte
	Annotations map[string]string
}

// Simple makes the signature of content by a key, as cosign 2 does.
func Simple(t testing.TB, key crypto.Signer, content digest.Digest) Blob {
	t.Helper()
	return SimpleOver(t, key, Payload(content))
}

// SimpleOver signs any payload.
func SimpleOver(t testing.TB, key crypto.Signer, payload []byte) Blob {
	t.Helper()
	signature := base64.StdEncoding.EncodeToString(sign(t, key, payload))
	return Blob{MediaType: SimpleType, Data: payload, Annotations: map[string]string{AnnotationSignature: signature}}
}

func sign(t testing.TB, key crypto.Signer, message []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(message)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// Statement is what cosign 3 signs for content.
func Statement(content digest.Digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, content.Encoded(), predicate)
}

// Bundle makes the signature of content by a key, as cosign 3 does.
func Bundle(t testing.TB, key crypto.Signer, content digest.Digest, predicate string) Blob {
	t.Helper()
	payload := Statement(content, predicate)
	const payloadType = "application/vnd.in-toto+json"
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
	bundle := map[string]any{
		"mediaType":            BundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "any"}},
		"dsseEnvelope": map[string]any{
			"payload": payload, "payloadType": payloadType,
			"signatures": []any{map[string]any{"sig": sign(t, key, signed)}},
		},
	}
	data, err := json.Marshal(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return Blob{MediaType: BundleType, Data: data}
}

// Place is a repository and how it is reached.
type Place struct {
	Repository string // such as "127.0.0.1:5000/app"
	Transport  http.RoundTripper
}

func (p Place) options() []remote.Option {
	if p.Transport == nil {
		return nil
	}
	return []remote.Option{remote.WithTransport(p.Transport)}
}

func (p Place) reference(t testing.TB, suffix string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(p.Repository+suffix, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// PushSimple puts signatures where cosign 2 puts them.
func (p Place) PushSimple(t testing.TB, content digest.Digest, blobs ...Blob) {
	t.Helper()
	image := artifact(t, blobs...)
	if err := remote.Write(p.reference(t, ":"+strings.Replace(content.String(), ":", "-", 1)+".sig"), image, p.options()...); err != nil {
		t.Fatal(err)
	}
}

// PushReferrer puts a signature into an artifact that refers to content.
func (p Place) PushReferrer(t testing.TB, content digest.Digest, artifactType string, annotations map[string]string, blobs ...Blob) {
	t.Helper()
	subject, err := remote.Head(p.reference(t, "@"+content.String()), p.options()...)
	if err != nil {
		t.Fatal(err)
	}
	image := mutate.ConfigMediaType(artifact(t, blobs...), types.MediaType(artifactType))
	image = mutate.Annotations(image, annotations).(v1.Image)
	image = mutate.Subject(image, *subject).(v1.Image)
	made, err := image.Digest()
	if err == nil {
		err = remote.Write(p.reference(t, "@"+made.String()), image, p.options()...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func artifact(t testing.TB, blobs ...Blob) v1.Image {
	t.Helper()
	var layers []mutate.Addendum
	for _, blob := range blobs {
		layers = append(layers, mutate.Addendum{
			Layer:       static.NewLayer(bytes.Clone(blob.Data), types.MediaType(blob.MediaType)),
			MediaType:   types.MediaType(blob.MediaType),
			Annotations: blob.Annotations,
		})
	}
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	return image
}
