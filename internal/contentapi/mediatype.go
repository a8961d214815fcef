// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"net/http"
	"path"
	"strings"
)

// mediaTypes by the ending of a name. The table is our own: that of the
// operating system differs from machine to machine.
var mediaTypes = map[string]string{
	".yaml": "application/yaml", ".yml": "application/yaml",
	".json": "application/json", ".toml": "application/toml", ".xml": "application/xml",
	".txt": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8", ".csv": "text/csv; charset=utf-8",
	".sh": "text/x-shellscript; charset=utf-8", ".conf": "text/plain; charset=utf-8", ".ini": "text/plain; charset=utf-8",
	".tpl": "text/plain; charset=utf-8", ".rego": "text/plain; charset=utf-8", ".cue": "text/plain; charset=utf-8",
	".jsonnet": "text/plain; charset=utf-8", ".go": "text/plain; charset=utf-8", ".py": "text/plain; charset=utf-8",
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".pem": "application/x-pem-file", ".crt": "application/x-x509-ca-cert",
	".wasm": "application/wasm", ".zip": "application/zip", ".tar": "application/x-tar", ".gz": "application/gzip",
	".tgz": "application/gzip", ".zst": "application/zstd", ".xz": "application/x-xz", ".bz2": "application/x-bzip2",
	".iso": "application/x-iso9660-image", ".squashfs": "application/vnd.squashfs",
}

// mediaTypeOf is what a name tells, or "".
func mediaTypeOf(name string) string {
	return mediaTypes[strings.ToLower(path.Ext(name))]
}

// sniffed is what the name tells, and else what the first bytes do.
func sniffed(name string, first []byte) string {
	if known := mediaTypeOf(name); known != "" {
		return known
	}
	return http.DetectContentType(first)
}
