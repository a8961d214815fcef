// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/s3server"
	"rukpak.io/rukpak/internal/unpack"
)

var (
	objects  = regexp.MustCompile("^/things/folder/")
	listings = regexp.MustCompile("^/things/?$")
)

// another answers with an object that has another ETag, as a service without
// conditions would.
func another(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	w.Header().Set("ETag", `"other"`)
	_, _ = w.Write([]byte("other"))
}

func TestFaultsOfServicesAreClassifiedAndHeal(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "folder/a", []byte(strings.Repeat("x", 100_000)))
	src := of(server, "things")
	src.Prefix = "folder"
	xml := func(code int, body string) fault.Action {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tc := range map[string]struct {
		rule   fault.Rule
		reason string
		kind   source.Kind
		want   string
	}{
		"Forbidden":      {fault.Rule{Action: fault.Status(403)}, source.ReasonAuthenticationFailed, source.Waiting, "403 Forbidden"},
		"NoBucket":       {fault.Rule{Action: xml(404, "<Error><Code>NoSuchBucket</Code><Message>hunter2</Message></Error>")}, source.ReasonNotFound, source.Waiting, "404 Not Found (NoSuchBucket)"},
		"Slow":           {fault.Rule{Action: xml(503, "<Error><Code>SlowDown</Code><Message>hunter2</Message></Error>")}, source.ReasonSourceUnreachable, source.Transient, "503 Service Unavailable (SlowDown)"},
		"SlowObjects":    {fault.Rule{Path: objects, Action: fault.Status(503)}, source.ReasonSourceUnreachable, source.Transient, "503"},
		"WrongRegion":    {fault.Rule{Action: xml(400, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-other-1</Region></Error>")}, source.ReasonSourceError, source.Waiting, ""},
		"Reset":          {fault.Rule{Action: fault.Reset()}, source.ReasonSourceUnreachable, source.Transient, "ended before"},
		"ObjectGone":     {fault.Rule{Path: objects, Action: fault.Status(404)}, source.ReasonNotFound, source.Waiting, "404"},
		"ObjectCut":      {fault.Rule{Path: objects, Action: fault.Truncate(50_000)}, source.ReasonSourceUnreachable, source.Transient, `object "folder/a", after 50000 of 100000 bytes`},
		"ObjectReplaced": {fault.Rule{Path: objects, Action: another}, source.ReasonContentMismatch, source.Waiting, "changed since it was listed"},
		"ObjectIsNone":   {fault.Rule{Path: objects, Action: fault.Replace([]byte("other"))}, source.ReasonSourceError, source.Waiting, "none of an S3 service"},
		"ObjectStalls":   {fault.Rule{Path: objects, Action: server.Faults.Stall(40_000)}, source.ReasonSourceUnreachable, source.Transient, "not a byte came for 300ms"},
		"ListingIsNoXML": {fault.Rule{Path: listings, Action: fault.Replace([]byte("<html>\nhello"))}, source.ReasonSourceUnreachable, source.Transient, ""},
		"ListingIsHuge":  {fault.Rule{Path: listings, Action: fault.Replace(append([]byte("<ListBucketResult><Name>"), make([]byte, maxPage)...))}, "", 0, ""},
		"ListingLies":    {fault.Rule{Path: listings, Action: fault.Replace([]byte("<ListBucketResult><Contents><Key>other/a</Key><Size>1</Size><ETag>e</ETag></Contents></ListBucketResult>"))}, source.ReasonSourceError, source.Waiting, "not in the folder"},
		"ListingNoETag":  {fault.Rule{Path: listings, Action: fault.Replace([]byte("<ListBucketResult><Contents><Key>folder/a</Key><Size>1</Size></Contents></ListBucketResult>"))}, source.ReasonSourceError, source.Waiting, "no ETag"},
		"ListingEscapes": {fault.Rule{Path: listings, Action: fault.Replace([]byte("<ListBucketResult><Contents><Key>folder/../../a</Key><Size>1</Size><ETag>e</ETag></Contents></ListBucketResult>"))}, source.ReasonUnsafeContent, source.Terminal, `entry "folder/../../a"`},
		"ListingIsEmpty": {fault.Rule{Path: listings, Action: fault.Replace([]byte("<ListBucketResult></ListBucketResult>"))}, source.ReasonEmptyContent, source.Waiting, "there is no object"},
		"MovedSomewhere": {fault.Rule{Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		}}, source.ReasonSourceError, source.Waiting, "307"},
		"ListingIsBroken": {fault.Rule{Path: listings, Action: fault.Truncate(100)}, source.ReasonSourceUnreachable, source.Transient, ""},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{}
			if strings.Contains(name, "Stalls") {
				options.Stall = 300 * time.Millisecond
			}
			server.Faults.Add(tc.rule)
			_, err := get(t, New(options), src, newStore(t), unpack.Limits{})
			server.Faults.Clear()
			if err == nil || tc.reason != "" && (source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "bucket "+server.Endpoint()+"/things/folder: ") || strings.ContainsAny(text, "\n") || strings.Contains(text, "hunter2") || strings.Contains(text, server.Password()) {
				t.Errorf("the error must be one line that names the bucket: %v", err)
			}
			if _, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{}); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func TestAPassingFaultIsNotEvenNoticed(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "folder/a", []byte("x"))
	server.Faults.Add(fault.Rule{Path: listings, Times: 1, Action: fault.Status(503)})
	server.Faults.Add(fault.Rule{Path: objects, Times: 1, Action: fault.Status(503)})
	if _, err := get(t, New(Options{}), of(server, "things"), newStore(t), unpack.Limits{}); err != nil {
		t.Error(err)
	}
}

func TestWhatChangesAfterItWasPinnedIsNotTaken(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "folder/a", []byte("1"))
	for name, src := range map[string]Source{
		"Folder": {Prefix: "folder"}, "Object": {Object: "folder/a"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := of(server, "things")
			whole.Prefix, whole.Object = src.Prefix, src.Object
			bucket.Put(t, "folder/a", []byte("1"))
			to := begin(t, newStore(t), unpack.Limits{})
			opened := New(Options{}).At(whole)
			pinned, err := opened.Resolve(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			bucket.Put(t, "folder/a", []byte("2"))
			_, _, err = opened.Fetch(t.Context(), pinned, to)
			if source.ReasonOf(err) != source.ReasonContentMismatch || source.KindOf(err) != source.Waiting || !strings.Contains(err.Error(), "changed since it was listed; make a new Bundle") {
				t.Errorf("between listing and fetching: %v", err)
			}
			_, _, err = New(Options{}).At(whole).Fetch(t.Context(), pinned, to)
			if source.ReasonOf(err) != source.ReasonContentMismatch || !strings.Contains(err.Error(), pinned.Digest.String()) {
				t.Errorf("later: %v", err)
			}
			bucket.Put(t, "folder/a", []byte("1"))
			if _, stats, err := New(Options{}).At(whole).Fetch(t.Context(), pinned, to); err != nil || stats.Fetched != 1 {
				t.Errorf("when it is as it was: %+v, %v", stats, err)
			}
		})
	}
}

func TestWhoMayRead(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	closed, open := server.Bucket(t, "closed", false), server.Bucket(t, "opened", false)
	closed.Put(t, "a", []byte("x"))
	open.Put(t, "a", []byte("x"))
	open.Open(t)
	for name, tc := range map[string]struct {
		edit func(*Source)
		want string
	}{
		"Owner":       {func(*Source) {}, ""},
		"NoRegion":    {func(s *Source) { s.Region = "" }, ""},
		"WrongSecret": {func(s *Source) { s.SecretKey = "hunter2" }, "SignatureDoesNotMatch"},
		"Unknown":     {func(s *Source) { s.AccessKey = "stranger" }, unknownUser},
		"Anonymous":   {func(s *Source) { s.AccessKey, s.SecretKey = "", "" }, "no secretRef gives it keys"},
		"Opened":      {func(s *Source) { s.AccessKey, s.SecretKey, s.Bucket = "", "", "opened" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			src := of(server, "closed")
			tc.edit(&src)
			_, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{})
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if source.ReasonOf(err) != source.ReasonAuthenticationFailed || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWrongSourcesAreRefused(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "folder/a", []byte("12345"))
	bucket.Put(t, "folder/b", []byte("12345"))
	bucket.Put(t, "empty", nil)
	for name, tc := range map[string]struct {
		edit   func(*Source)
		limits unpack.Limits
		reason string
		want   string
	}{
		"PlainHTTP":    {func(s *Source) { s.Insecure = false }, unpack.Limits{}, source.ReasonInvalidReference, "set insecure"},
		"Path":         {func(s *Source) { s.Endpoint += "/path" }, unpack.Limits{}, source.ReasonInvalidReference, "without a path"},
		"Metadata":     {func(s *Source) { s.Endpoint = "http://169.254.169.254" }, unpack.Limits{}, source.ReasonSourceError, "metadata service"},
		"NoSuchBucket": {func(s *Source) { s.Bucket = "nothing" }, unpack.Limits{}, source.ReasonNotFound, "NoSuchBucket"},
		"NoSuchFolder": {func(s *Source) { s.Prefix = "folde" }, unpack.Limits{}, source.ReasonEmptyContent, "there is no object"},
		"NoSuchObject": {func(s *Source) { s.Object = "a" }, unpack.Limits{}, source.ReasonNotFound, "404"},
		"EmptyObject":  {func(s *Source) { s.Object = "empty" }, unpack.Limits{}, source.ReasonEmptyContent, "not a byte"},
		"Packed":       {func(*Source) {}, unpack.Limits{CompressedBytes: 9}, source.ReasonLimitExceeded, "--limit-compressed-bytes"},
		"File":         {func(*Source) {}, unpack.Limits{FileBytes: 4}, source.ReasonLimitExceeded, "--limit-file-bytes"},
		"Files":        {func(*Source) {}, unpack.Limits{Files: 1}, source.ReasonLimitExceeded, "--limit-files"},
		"Object":       {func(s *Source) { s.Object = "folder/a" }, unpack.Limits{CompressedBytes: 4}, source.ReasonLimitExceeded, "--limit-compressed-bytes"},
		"Trusted":      {func(s *Source) { s.TLS = outbound.TLS{CA: []byte("none")} }, unpack.Limits{}, source.ReasonInvalidReference, "the CA holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			src := of(server, "things")
			tc.edit(&src)
			_, err := get(t, New(Options{}), src, newStore(t), tc.limits)
			if source.ReasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
		})
	}
}

func TestAServiceThatIsDownIsTransient(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	src := of(server, "things")
	server.Close()
	_, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{})
	if source.ReasonOf(err) != source.ReasonSourceUnreachable || source.KindOf(err) != source.Transient {
		t.Errorf("got %v", err)
	}
}
