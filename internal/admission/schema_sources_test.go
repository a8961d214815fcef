// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"
)

func bundleOf(source string) string {
	return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: Bundle, metadata: {name: a, namespace: default}, spec: {sources: [{%s}]}}", source)
}

func TestSchemaOfHTTPSources(t *testing.T) {
	const url = "http: {url: 'https://example.com/a.tgz'"
	checkSchema(t, []schemaCase{
		{"the least", bundleOf(url + "}"), ""},
		{"all", bundleOf(url + ", sha256: " + strings.Repeat("a", 64) + ", archive: Auto, mediaType: application/x-tar, fileName: a/b, subPath: a/b, insecure: true, secretRef: {name: s}}"), ""},
		{"query", bundleOf("http: {url: 'https://example.com:8443/a?b=c&d=%20'}"), ""},
		{"plain HTTP", bundleOf("http: {url: 'http://example.com/a'}"), "url must be https://, or http:// with insecure"},
		{"plain HTTP allowed", bundleOf("http: {url: 'http://example.com/a', insecure: true}"), ""},
		{"another scheme", bundleOf("http: {url: 'ftp://example.com/a', insecure: true}"), "http.url in body should match"},
		{"credentials", bundleOf("http: {url: 'https://ann:secret@example.com/a'}"), "http.url in body should match"},
		{"fragment", bundleOf("http: {url: 'https://example.com/a#b'}"), "http.url in body should match"},
		{"short digest", bundleOf(url + ", sha256: abc}"), "http.sha256 in body should match"},
		{"unknown archive mode", bundleOf(url + ", archive: Maybe}"), `supported values: "Auto", "Never"`},
		{"folder of no archive", bundleOf(url + ", archive: Never, subPath: a}"), "mediaType and subPath are about archives"},
		{"absolute folder", bundleOf(url + ", subPath: /a}"), "http.subPath in body should match"},
	})
}

func TestSchemaOfHelmSources(t *testing.T) {
	const chart = ", chart: app"
	checkSchema(t, []schemaCase{
		{"classic", bundleOf("helm: {repository: 'https://example.com/charts', version: '^1', secretRef: {name: s}, passCredentials: true" + chart + "}"), ""},
		{"registry", bundleOf("helm: {repository: 'oci://example.com/charts', pullSecrets: [{name: s}]" + chart + "}"), ""},
		{"no chart", bundleOf("helm: {repository: 'oci://example.com/charts'}"), "helm.chart: Required value"},
		{"plain HTTP", bundleOf("helm: {repository: 'http://example.com/charts'" + chart + "}"), "repository must be https:// or oci://, or http:// with insecure"},
		{"plain HTTP allowed", bundleOf("helm: {repository: 'http://example.com/charts', insecure: true" + chart + "}"), ""},
		{"query", bundleOf("helm: {repository: 'https://example.com/charts?a=b'" + chart + "}"), "helm.repository in body should match"},
		{"secretRef for a registry", bundleOf("helm: {repository: 'oci://example.com/charts', secretRef: {name: s}" + chart + "}"), "for an oci:// repository set pullSecrets"},
		{"pullSecrets for where an index leads", bundleOf("helm: {repository: 'https://example.com/charts', pullSecrets: [{name: s}]" + chart + "}"), ""},
	})
}

func TestSchemaOfOCISources(t *testing.T) {
	checkSchema(t, []schemaCase{
		{"all", bundleOf("oci: {ref: 'example.com:5000/a/b', semver: '*', semverFilter: 'a$', platform: {architecture: arm64, variant: v8}, layers: [{index: 0}, {title: a, mediaType: b/c}], config: config.json}"), ""},
		{"range without a registry", bundleOf("oci: {ref: app, semver: '*'}"), ""},
		{"range and tag", bundleOf("oci: {ref: 'example.com:5000/a:1', semver: '*'}"), "ref has neither tag nor digest when semver is set"},
		{"range and digest", bundleOf("oci: {ref: 'example.com/a@sha256:" + strings.Repeat("a", 64) + "', semver: '*'}"), "ref has neither tag nor digest when semver is set"},
		{"filter without a range", bundleOf("oci: {ref: app, semverFilter: a}"), "semverFilter needs semver"},
		{"referrer", bundleOf("oci: {ref: 'app:1', platform: {os: linux}, referrer: {artifactType: application/spdx+json, annotations: {a: b}}}"), ""},
		{"referrer of no type", bundleOf("oci: {ref: 'app:1', referrer: {annotations: {a: b}}}"), "oci.referrer.artifactType: Required value"},
		{"referrer of the empty type", bundleOf("oci: {ref: 'app:1', referrer: {artifactType: ''}}"), "artifactType in body should be at least 1 chars long"},
		{"empty selector", bundleOf("oci: {ref: app, layers: [{}]}"), "at least one of mediaType, title and index must be set"},
		{"no selectors", bundleOf("oci: {ref: app, layers: []}"), "oci.layers in body should have at least 1 items"},
		{"negative index", bundleOf("oci: {ref: app, layers: [{index: -1}]}"), "should be greater than or equal to 0"},
	})
}

func TestSchemaOfBucketSources(t *testing.T) {
	const bucket = "bucket: {endpoint: 'https://s3.example.com:9000', bucket: things"
	checkSchema(t, []schemaCase{
		{"the least", bundleOf(bucket + "}"), ""},
		{"folder", bundleOf(bucket + ", prefix: 'a/b c/', region: eu-1, secretRef: {name: s}}"), ""},
		{"object", bundleOf(bucket + ", object: a/b.tgz, versionId: v, mediaType: application/x-tgz, subPath: a}"), ""},
		{"plain HTTP", bundleOf("bucket: {endpoint: 'http://s3.example.com', bucket: things}"), "endpoint must be https://, or http:// with insecure"},
		{"plain HTTP allowed", bundleOf("bucket: {endpoint: 'http://s3.example.com', bucket: things, insecure: true}"), ""},
		{"path", bundleOf("bucket: {endpoint: 'https://s3.example.com/things', bucket: things}"), "bucket.endpoint in body should match"},
		{"bad name", bundleOf("bucket: {endpoint: 'https://s3.example.com', bucket: a/b}"), "bucket.bucket in body should match"},
		{"folder and object", bundleOf(bucket + ", prefix: a, object: b}"), "at most one of prefix and object may be set"},
		{"version of a folder", bundleOf(bucket + ", prefix: a, versionId: v}"), "versionId, archive, mediaType and subPath are about an object"},
		{"folder of no archive", bundleOf(bucket + ", object: a, archive: Never, subPath: a}"), "mediaType and subPath are about archives"},
		{"absolute prefix", bundleOf(bucket + ", prefix: /a}"), "bucket.prefix in body should match"},
		{"object with a line break", bundleOf(bucket + `, object: "a\nb"}`), "bucket.object in body should match"},
	})
}
