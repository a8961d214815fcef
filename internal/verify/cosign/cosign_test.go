// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/testenv/signing"
	"rukpak.io/rukpak/internal/verify"
)

const (
	subject = "https://github.com/example/app/.github/workflows/release.yaml@refs/heads/main"
	issuer  = "https://token.actions.githubusercontent.com"
)

var (
	content = digest.FromString("content")
	other   = digest.FromString("other content")
)

func attached(blobs ...signing.Blob) iter.Seq2[verify.Attachment, error] {
	return func(yield func(verify.Attachment, error) bool) {
		for _, b := range blobs {
			a := verify.Attachment{Manifest: digest.FromBytes(b.Data), MediaType: b.MediaType, Annotations: b.Annotations, Data: b.Data}
			if !yield(a, nil) {
				return
			}
		}
	}
}

func byKey(t *testing.T, pem string) verify.Verifier {
	t.Helper()
	keys, err := ParseKeys([]byte(pem))
	if err != nil {
		t.Fatal(err)
	}
	v, err := ByKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func reasonOf(err error) string {
	if refusal, ok := errors.AsType[*verify.Refusal](err); ok {
		return refusal.Reason
	}
	return ""
}

type verdictCase struct {
	blobs  []signing.Blob
	reason string // "" for a signature that counts
	says   string
}

func check(t *testing.T, v verify.Verifier, cases map[string]verdictCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			verdict, err := verify.Find(t.Context(), v, content, attached(tc.blobs...))
			if tc.reason == "" {
				if err != nil || verdict.Signer == "" || verdict.Method != v.Method() {
					t.Errorf("got %+v, %v", verdict, err)
				}
				return
			}
			if reasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v (%s), want %s: ...%s...", err, reasonOf(err), tc.reason, tc.says)
			}
			if verdict != (verify.Verdict{}) {
				t.Errorf("a refusal comes with a verdict: %+v", verdict)
			}
		})
	}
}

func edited(b signing.Blob, edit func(*signing.Blob)) signing.Blob {
	copied := map[string]string{}
	for key, value := range b.Annotations {
		copied[key] = value
	}
	b.Annotations, b.Data = copied, bytes.Clone(b.Data)
	edit(&b)
	return b
}

func TestSignaturesByKey(t *testing.T) {
	key, stranger := signing.Key(t), signing.Key(t)
	good := signing.Simple(t, key, content)
	bundle := signing.Bundle(t, key, content, signing.SignPredicate)
	check(t, byKey(t, signing.PEM(t, stranger)+signing.PEM(t, key)), map[string]verdictCase{
		"SecondOfTwoKeys":       {[]signing.Blob{good}, "", ""},
		"SecondOfTwoKeysBundle": {[]signing.Blob{bundle}, "", ""},
	})
	check(t, byKey(t, signing.PEM(t, key)), map[string]verdictCase{
		"Good":            {[]signing.Blob{good}, "", ""},
		"GoodBundle":      {[]signing.Blob{bundle}, "", ""},
		"GoodBehindBad":   {[]signing.Blob{signing.Simple(t, stranger, content), bundle}, "", ""},
		"Nothing":         {nil, verify.ReasonSignatureMissing, "there is no signature (wanted: cosign, by the key sha256:"},
		"OfAnotherKind":   {[]signing.Blob{{MediaType: "application/spdx+json", Data: []byte("{}")}}, verify.ReasonSignatureMissing, ""},
		"OtherKey":        {[]signing.Blob{signing.Simple(t, stranger, content)}, verify.ReasonSignatureInvalid, "not by this key"},
		"OtherKeyBundle":  {[]signing.Blob{signing.Bundle(t, stranger, content, signing.SignPredicate)}, verify.ReasonSignatureInvalid, "does not stand the check"},
		"OtherContent":    {[]signing.Blob{signing.Simple(t, key, other)}, verify.ReasonSignatureInvalid, "about other content"},
		"OtherContentToo": {[]signing.Blob{signing.Bundle(t, key, other, signing.SignPredicate)}, verify.ReasonSignatureInvalid, ""},
		"PayloadSwapped": {[]signing.Blob{edited(signing.Simple(t, key, other), func(b *signing.Blob) { b.Data = signing.Payload(content) })},
			verify.ReasonSignatureInvalid, "not over this payload"},
		"DigestAddedToPayload": {[]signing.Blob{edited(good, func(b *signing.Blob) {
			b.Data = append([]byte(" "), b.Data...)
		})}, verify.ReasonSignatureInvalid, "not over this payload"},
		"PayloadOfAnotherType": {[]signing.Blob{signing.SimpleOver(t, key, bytes.Replace(signing.Payload(content), []byte("cosign container image signature"), []byte("atomic container signature"), 1))},
			verify.ReasonSignatureInvalid, "not that of a signature"},
		"Attestation":  {[]signing.Blob{signing.Bundle(t, key, content, "https://slsa.dev/provenance/v1")}, verify.ReasonSignatureInvalid, "it is an attestation"},
		"NoAnnotation": {[]signing.Blob{edited(good, func(b *signing.Blob) { clear(b.Annotations) })}, verify.ReasonSignatureInvalid, "no annotation"},
		"NoBase64":     {[]signing.Blob{edited(good, func(b *signing.Blob) { b.Annotations[annotationSignature] = "%" })}, verify.ReasonSignatureInvalid, "no base64"},
		"NoJSON":       {[]signing.Blob{signing.SimpleOver(t, key, []byte("{"))}, verify.ReasonSignatureInvalid, "no JSON"},
		"BundleNoJSON": {[]signing.Blob{{MediaType: bundleMediaType, Data: []byte("{")}}, verify.ReasonSignatureInvalid, "cannot be read"},
		"BundleEmpty":  {[]signing.Blob{{MediaType: bundleMediaType, Data: []byte("{}")}}, verify.ReasonSignatureInvalid, "cannot be read"},
		"KeyInBundle": {[]signing.Blob{edited(signing.NewSigstore(t).KeylessBundle(t, signing.Keyless{Subject: subject, Issuer: issuer}, content, signing.SignPredicate), func(*signing.Blob) {})},
			verify.ReasonSignatureInvalid, ""},
	})
}

func TestKeysOfAllKindsCount(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	check(t, byKey(t, signing.PEM(t, p384)), map[string]verdictCase{"P384": {[]signing.Blob{signing.Simple(t, p384, content)}, "", ""}})
	check(t, byKey(t, signing.PEM(t, long)), map[string]verdictCase{"RSA": {[]signing.Blob{signing.Simple(t, long, content)}, "", ""}})
	payload := signing.Payload(content)
	signed := signing.Blob{MediaType: simpleMediaType, Data: payload, Annotations: map[string]string{
		annotationSignature: base64.StdEncoding.EncodeToString(ed25519.Sign(edwards, payload)),
	}}
	check(t, byKey(t, signing.PEM(t, edwards)), map[string]verdictCase{"Ed25519": {[]signing.Blob{signed}, "", ""}})
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // too short is the point
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signing.Key(t))
	if err != nil {
		t.Fatal(err)
	}
	good := signing.PEM(t, signing.Key(t))
	for name, tc := range map[string]struct{ text, want string }{
		"Empty":       {"", "no public key in PEM"},
		"Text":        {"ssh-ed25519 AAAA", "no public key in PEM"},
		"Private":     {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), "private key"},
		"Certificate": {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "not a PUBLIC KEY"},
		"Damaged":     {string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})), "cannot be read"},
		"Short":       {signing.PEM(t, short), "fewer than 2048"},
		"CutOff":      {good + good[:len(good)/2], "begins like PEM"},
		"Many":        {strings.Repeat(good, maxKeys+1), "more than 32 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseKeys([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := ByKeys(nil); err == nil {
		t.Error("a verifier without keys was made")
	}
}

func byIdentity(t *testing.T, root []byte, identities ...Identity) verify.Verifier {
	t.Helper()
	v, err := ByIdentities(identities, root)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSignaturesByIdentity(t *testing.T) {
	ours, theirs := signing.NewSigstore(t), signing.NewSigstore(t)
	root := ours.TrustedRoot(t, signing.Parts{})
	how := signing.Keyless{Subject: subject, Issuer: issuer}
	with := func(edit func(*signing.Keyless)) signing.Keyless {
		changed := how
		edit(&changed)
		return changed
	}
	simple := func(how signing.Keyless) []signing.Blob { return []signing.Blob{ours.KeylessSimple(t, how, content)} }
	bundle := func(how signing.Keyless) []signing.Blob {
		return []signing.Blob{ours.KeylessBundle(t, how, content, signing.SignPredicate)}
	}
	impostor := with(func(k *signing.Keyless) { k.Subject = "https://evil.example.com/?" + subject + "/more" })
	foreign := with(func(k *signing.Keyless) { k.Issuer = "https://evil.example.com" })
	late := with(func(k *signing.Keyless) { k.At = time.Now().Add(40 * time.Minute) })
	unlogged := with(func(k *signing.Keyless) { k.NoEntry = true })
	untimed := with(func(k *signing.Keyless) { k.NoTimestamp = true })
	for name, identity := range map[string]Identity{
		"Subject": {Issuer: issuer, Subject: subject},
		"RegExp":  {Issuer: issuer, SubjectRegExp: `https://github\.com/example/.*@refs/heads/main`},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, byIdentity(t, root, identity), map[string]verdictCase{
				"Simple":            {simple(how), "", ""},
				"Bundle":            {bundle(how), "", ""},
				"SimpleUntimed":     {simple(untimed), "", ""}, // the log tells the time
				"BundleUntimed":     {bundle(untimed), "", ""},
				"SimpleImpostor":    {simple(impostor), verify.ReasonIdentityMismatch, "evil.example.com"},
				"BundleImpostor":    {bundle(impostor), verify.ReasonIdentityMismatch, "evil.example.com"},
				"SimpleForeign":     {simple(foreign), verify.ReasonIdentityMismatch, "somebody else"},
				"BundleForeign":     {bundle(foreign), verify.ReasonIdentityMismatch, "somebody else"},
				"SimpleExpired":     {simple(late), verify.ReasonSignatureInvalid, "outside certificate validity"},
				"BundleExpired":     {bundle(late), verify.ReasonSignatureInvalid, "outside certificate validity"},
				"SimpleUnlogged":    {simple(unlogged), verify.ReasonSignatureInvalid, "not enough verified log entries"},
				"BundleUnlogged":    {bundle(unlogged), verify.ReasonSignatureInvalid, "not enough verified log entries"},
				"SimpleOtherRoot":   {[]signing.Blob{theirs.KeylessSimple(t, how, content)}, verify.ReasonSignatureInvalid, ""},
				"BundleOtherRoot":   {[]signing.Blob{theirs.KeylessBundle(t, how, content, signing.SignPredicate)}, verify.ReasonSignatureInvalid, ""},
				"SimpleOther":       {[]signing.Blob{ours.KeylessSimple(t, how, other)}, verify.ReasonSignatureInvalid, "other content"},
				"BundleOther":       {[]signing.Blob{ours.KeylessBundle(t, how, other, signing.SignPredicate)}, verify.ReasonSignatureInvalid, ""},
				"Attestation":       {[]signing.Blob{ours.KeylessBundle(t, how, content, "https://slsa.dev/provenance/v1")}, verify.ReasonSignatureInvalid, "an attestation"},
				"ByKey":             {[]signing.Blob{signing.Simple(t, signing.Key(t), content)}, verify.ReasonSignatureInvalid, "no certificate"},
				"ByKeyBundle":       {[]signing.Blob{signing.Bundle(t, signing.Key(t), content, signing.SignPredicate)}, verify.ReasonSignatureInvalid, ""},
				"SwappedPayload":    {[]signing.Blob{edited(ours.KeylessSimple(t, how, other), func(b *signing.Blob) { b.Data = signing.Payload(content) })}, verify.ReasonSignatureInvalid, ""},
				"EntryOfAnother":    {[]signing.Blob{edited(simple(how)[0], func(b *signing.Blob) { b.Annotations[annotationEntry] = simple(how)[0].Annotations[annotationEntry] })}, verify.ReasonSignatureInvalid, "does not match"},
				"EntryNoJSON":       {[]signing.Blob{edited(simple(how)[0], func(b *signing.Blob) { b.Annotations[annotationEntry] = "{" })}, verify.ReasonSignatureInvalid, "cannot be read"},
				"EntryEmpty":        {[]signing.Blob{edited(simple(how)[0], func(b *signing.Blob) { b.Annotations[annotationEntry] = "{}" })}, verify.ReasonSignatureInvalid, ""},
				"GoodBehindOthers":  {append(append(simple(impostor), bundle(late)...), bundle(how)...), "", ""},
				"MismatchTellsMost": {append(simple(late), simple(impostor)...), verify.ReasonIdentityMismatch, "none of 2 signatures"},
			})
		})
	}
}

func TestWhatTheTrustedRootHasMustComeWithTheSignature(t *testing.T) {
	ours := signing.NewSigstore(t)
	how := signing.Keyless{Subject: subject, Issuer: issuer}
	unlogged := signing.Keyless{Subject: subject, Issuer: issuer, NoEntry: true}
	bare := signing.Keyless{Subject: subject, Issuer: issuer, NoEntry: true, NoTimestamp: true}
	identity := Identity{Issuer: issuer, Subject: subject}
	clockOnly := byIdentity(t, ours.TrustedRoot(t, signing.Parts{NoLog: true}), identity)
	check(t, clockOnly, map[string]verdictCase{
		"TimestampAlone":       {[]signing.Blob{ours.KeylessBundle(t, unlogged, content, signing.SignPredicate)}, "", ""},
		"TimestampAloneSimple": {[]signing.Blob{ours.KeylessSimple(t, unlogged, content)}, "", ""},
		"NoTime":               {[]signing.Blob{ours.KeylessBundle(t, bare, content, signing.SignPredicate)}, verify.ReasonSignatureInvalid, "timestamp"},
	})
	certificateLog := byIdentity(t, ours.TrustedRoot(t, signing.Parts{CertificateLog: true}), identity)
	check(t, certificateLog, map[string]verdictCase{
		"CertificateNotLogged": {[]signing.Blob{ours.KeylessBundle(t, how, content, signing.SignPredicate)}, verify.ReasonSignatureInvalid, "signed certificate timestamp"},
	})
}

func TestVerdictTellsWhoSignedAndWhen(t *testing.T) {
	ours := signing.NewSigstore(t)
	at := time.Now().Add(2 * time.Minute).Truncate(time.Second)
	blob := ours.KeylessSimple(t, signing.Keyless{Subject: subject, Issuer: issuer, At: at, NoTimestamp: true}, content)
	v := byIdentity(t, ours.TrustedRoot(t, signing.Parts{}), Identity{Issuer: issuer, Subject: subject})
	verdict, err := verify.Find(t.Context(), v, content, attached(blob))
	if err != nil || verdict.Signer != subject+" of "+issuer || !verdict.Time.Equal(at) || verdict.Method != MethodKeyless {
		t.Errorf("got %+v, %v", verdict, err)
	}
}

func TestIncompleteConfigurationIsRefused(t *testing.T) {
	ours := signing.NewSigstore(t)
	root := ours.TrustedRoot(t, signing.Parts{})
	good := Identity{Issuer: issuer, Subject: subject}
	for name, tc := range map[string]struct {
		identities []Identity
		root       []byte
		want       string
	}{
		"NoIdentity":    {nil, root, "no identity"},
		"NoIssuer":      {[]Identity{{Subject: subject}}, root, "no issuer"},
		"NoSubject":     {[]Identity{{Issuer: issuer}}, root, "exactly one of subject"},
		"BothSubjects":  {[]Identity{{Issuer: issuer, Subject: "a", SubjectRegExp: "b"}}, root, "exactly one of subject"},
		"SecondIsEmpty": {[]Identity{good, {Issuer: issuer}}, root, "exactly one of subject"},
		"Unbalanced":    {[]Identity{{Issuer: issuer, SubjectRegExp: "a)|(?:.*"}}, root, "subjectRegExp"},
		"NoRoot":        {[]Identity{good}, nil, "trusted root"},
		"RootIsNoJSON":  {[]Identity{good}, []byte("-----BEGIN CERTIFICATE-----"), "trusted root"},
		"EmptyRoot":     {[]Identity{good}, []byte(`{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), "no certificate authority"},
		"NoAuthority":   {[]Identity{good}, ours.TrustedRoot(t, signing.Parts{NoAuthority: true}), "no certificate authority"},
		"NoWitness":     {[]Identity{good}, ours.TrustedRoot(t, signing.Parts{NoLog: true, NoClock: true}), "neither a log nor a timestamp authority"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ByIdentities(tc.identities, tc.root); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzSimpleSignature(f *testing.F) {
	key := signing.Key(f)
	good := signing.Simple(f, key, content)
	keyless := signing.NewSigstore(f).KeylessSimple(f, signing.Keyless{Subject: subject, Issuer: issuer}, content)
	f.Add(good.Data, good.Annotations[annotationSignature], "", "", "")
	f.Add(keyless.Data, keyless.Annotations[annotationSignature], keyless.Annotations[annotationCertificate], keyless.Annotations[annotationEntry], keyless.Annotations[annotationTimestamp])
	stranger := signing.NewSigstore(f)
	keys, err := ParseKeys([]byte(signing.PEM(f, signing.Key(f))))
	if err != nil {
		f.Fatal(err)
	}
	v1, _ := ByKeys(keys)
	v2, err := ByIdentities([]Identity{{Issuer: issuer, SubjectRegExp: ".*"}}, stranger.TrustedRoot(f, signing.Parts{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, signature, certificate, entry, stamp string) {
		blob := signing.Blob{MediaType: simpleMediaType, Data: data, Annotations: map[string]string{
			annotationSignature: signature, annotationCertificate: certificate, annotationEntry: entry, annotationTimestamp: stamp,
		}}
		for _, v := range []verify.Verifier{v1, v2} {
			if verdict, err := verify.Find(t.Context(), v, content, attached(blob)); err == nil {
				t.Errorf("a signature that nobody trusted made counts: %+v", verdict)
			}
		}
	})
}

func FuzzBundle(f *testing.F) {
	f.Add(signing.Bundle(f, signing.Key(f), content, signing.SignPredicate).Data)
	f.Add(signing.NewSigstore(f).KeylessBundle(f, signing.Keyless{Subject: subject, Issuer: issuer}, content, signing.SignPredicate).Data)
	v, err := ByIdentities([]Identity{{Issuer: issuer, SubjectRegExp: ".*"}}, signing.NewSigstore(f).TrustedRoot(f, signing.Parts{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if verdict, err := verify.Find(t.Context(), v, content, attached(signing.Blob{MediaType: bundleMediaType, Data: data})); err == nil {
			t.Errorf("a bundle that nobody trusted made counts: %+v", verdict)
		}
	})
}
