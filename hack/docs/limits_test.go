// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/unpack"
)

// What docs/limits.md says, and the expression in the code that makes it true. When the code changes, so must the page.
func TestLimitsPageSaysWhatTheCodeDoes(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "limits.md"))
	if main := read(t, filepath.Join(root, "cmd", "manager", "main.go")); !strings.Contains(main, "Limits.Register(flag.CommandLine)") {
		t.Error("cmd/manager has no flags for limits, but docs/limits.md says so")
	}
	for _, test := range []struct{ file, constant, value, row string }{
		{"internal/unpack/limits.go", "CompressedBytes:", "1 << 30,", "| 1 GiB | `--limit-compressed-bytes` |"},
		{"internal/unpack/limits.go", "UnpackedBytes:", "4 << 30,", "| 4 GiB | `--limit-unpacked-bytes` |"},
		{"internal/unpack/limits.go", "FileBytes:", "1 << 30,", "| 1 GiB | `--limit-file-bytes` |"},
		{"internal/unpack/limits.go", "Files:", "100_000,", "| 100,000 | `--limit-files` |"},
		{"internal/unpack/limits.go", "PathBytes:", "1024,", "| 1,024 | `--limit-path-bytes` |"},
		{"internal/unpack/limits.go", "PathDepth:", "64,", "| 64 | `--limit-path-depth` |"},
		{"internal/unpack/limits.go", "Layers:", "256,", "| 256 | `--limit-layers` |"},
		{"internal/unpack/limits.go", "Ratio:", "200,", "| 200 | `--limit-ratio` |"},
		{"internal/unpack/limits.go", "ratioFloor =", "32 << 20", "more than 32 MiB"},
		{"internal/parse/doc.go", "MaxFiles =", "64 << 20", "files that are read | 64 MiB |"},
		{"internal/parse/doc.go", "MaxDocument =", "16 << 20", "document | 16 MiB |"},
		{"internal/parse/doc.go", "MaxStructure =", "2 << 20", "one document | 2,097,152 |"},
		{"internal/parse/doc.go", "MaxValues =", "4 << 20", "aliases add | 4,194,304 |"},
		{"internal/parse/doc.go", "maxExpanded =", "4 << 20", "one document | 4 MiB |"},
		{"internal/parse/doc.go", "maxDepth =", "500", "Kustomization reads | 500 |"},
		{"internal/parse/doc.go", "MaxObjects =", "50_000", "| Objects | 50,000 |"},
		{"internal/parse/doc.go", "MaxFaults =", "20", "one error lists | 20 |"},
		{"internal/provisioners/remote/remote.go", "MaxResult =", "32 << 20", "as JSON | 32 MiB |"},
		{"internal/manifest/set.go", "MaxTasks =", "256", "teardown together | 256 |"},
		{"internal/provisioners/remote/remote.go", "maxValues =", "3 << 20", "one result | 3,145,728 |"},
		{"internal/provisioners/remote/remote.go", "maxObjects =", "50_000", "one result | 50,000 |"},
		{"internal/provisioners/remote/remote.go", "maxText =", "64 << 10", "an error | 64 KiB |"},
		{"internal/provisioners/remote/remote.go", "maxSchema =", "1 << 20", "configurations | 1 MiB |"},
		{"internal/provisioners/remote/remote.go", "maxFaults =", "100", "one error lists | 100 |"},
		{"internal/provisioners/remote/remote.go", "longest =", "5 * time.Minute", "one rendering | 5 minutes |"},
		{"internal/provisioners/remote/remote.go", "maxJobs =", "10_000", "that wait | 10,000 |"},
		{"internal/provisioners/remote/remote.go", "maxLost =", "3", "one job | 3 |"},
		{"internal/provisioners/remote/remote.go", "maxHeld =", "256 << 20", "to be used | 256 MiB |"},
		{"internal/manifest/set.go", "MaxBytes =", "128 << 20", "| Encoded bytes | 128 MiB |"},
		{"internal/manifest/pack.go", "MaxPart =", "900 << 10", "| 900 KiB |"},
		{"internal/manifest/pack.go", "MaxParts =", "64", "| Such Secrets | 64 |"},
		{"internal/notify/event.go", "MaxEvent =", "64 << 10", "Bytes of an event | 64 KiB |"},
		{"internal/notify/event.go", "maxLines =", "10", "bytes of a line | 10, 256 |"},
		{"internal/notify/event.go", "maxLine =", "256", "bytes of a line | 10, 256 |"},
		{"internal/notify/sender.go", "DefaultTimeout =", "10 * time.Second", "may take | 10 seconds |"},
		{"internal/notify/sender.go", "maxResponse =", "64 << 10", "that are read | 64 KiB |"},
		{"internal/notify/sender.go", "maxToken =", "16 << 10", "the token | 16 KiB |"},
		{"internal/controller/notify/controller.go", "workers =", "16", "to one `url` | 16, 4 |"},
		{"internal/controller/notify/lanes.go", "laneWidth =", "4", "to one `url` | 16, 4 |"},
		{"internal/controller/notify/controller.go", "DefaultLongest =", "5 * time.Minute", "the longest | 5 minutes |"},
		{"internal/controller/status/status.go", "MaxMessage =", "8 << 10", "| 8 KiB, one line |"},
	} {
		code := strings.Join(strings.Fields(read(t, filepath.Join(root, test.file))), " ")
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(test.constant+" "+test.value) + `(\W|$)`).MatchString(code) {
			t.Errorf("%s: %s is no longer %s: say so in docs/limits.md and here", test.file, test.constant, test.value)
		}
		if !strings.Contains(page, test.row) {
			t.Errorf("docs/limits.md does not say %q", test.row)
		}
	}
}

func TestLimitsPageHasAllFlags(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "limits.md"))
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	new(unpack.Limits).Register(flags)
	flags.VisitAll(func(one *flag.Flag) {
		if !strings.Contains(page, "| `--"+one.Name+"` |") {
			t.Errorf("docs/limits.md has no row for --%s: %s", one.Name, one.Usage)
		}
	})
}
