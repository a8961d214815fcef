// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
	"testing"
	"text/template"
)

// outcomeOf runs a template as Helm's engine does.
func outcomeOf(text string, functions template.FuncMap) (written, fault string) {
	made, err := template.New("t").Option("missingkey=zero").Funcs(functions).Parse(text)
	if err != nil {
		return "", "parse"
	}
	var buf strings.Builder
	data := map[string]any{"a": "x", "list": []any{1, "two", nil}, "none": nil, "map": map[string]any{"k": "{{ .a }}"}, "empty": []any{}}
	if err := made.Execute(&buf, data); err != nil {
		return "", "execute"
	}
	return buf.String(), ""
}

// FuzzWatchedTemplatesWriteTheSame holds the calls that are put into templates to change nothing that is written.
func FuzzWatchedTemplatesWriteTheSame(f *testing.F) {
	for _, seed := range []string{
		"", "text", "{{ 0 }}{", "{{ .a -}} {", "{{ .a }}}{", "{{ (0) | }}", "{{ .a }}", "{{- .a -}} ", " {{- .a }}", "{{ .none }}{{ .missing }}{{ .map.missing }}{{ nil }}", "{{ range .list }}{{ . }},{{ end }}",
		"a {{ range .list -}}  b {{- . }} {{- end }} c", "{{ range $i, $e := .list }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ $e }}{{ else }}none{{ end }}",
		"{{ range .empty }}x{{ else }} y {{- end }}", "{{ define \"d\" }} in {{- .a -}} {{ end }}[{{ template \"d\" . }}]",
		"{{ define \"d\" }}first{{ end }}{{ define \"d\" }} {{/* empty */}} {{ end }}{{ template \"d\" }}", "{{ block \"b\" . }}{{ .a }}{{ end }}",
		"{{ define \"d\" -}}\n  x\n{{- end -}}\n  {{ template \"d\" }}", "{{/* a }} comment */}}x", "{{- /* c */ -}} x", "{{ \"}}\" }}{{ `}}` }}{{ '}' }}", "{{ $x := .a }}{{ $x }}{{ $x = 3 }}{{ $x }}",
		"{{ tpl .map.k . }}", "{{ tpl (tpl .map.k .) . | printf \"%s\" }}", "{{ . | tpl .map.k }}", "{{ tpl \"{{ range .list }}{{ . }}{{ end }}\" . }}", "{{ (.a) }}{{ .map.k | len }}", "{{ with .a }}{{ . }}{{ else with .b }}{{ . }}{{ end }}",
		"{{ range 3 }}{{ . }}{{ end }}", "{{ if .a }}a{{ else if .b }}b{{ else }}c{{ end }}", "{{ printf \"%d | quote\" 3 }}{{ .a | printf \"%s\" | html }}", "{{\n.a\n}}", "{{.a}}{{-3}}{{- 3 -}}", "{{ range .list }}{{ break }}{{ end }}", "}}{{",
		"{{ .tpl }}{{ $tpl := 1 }}{{ $tpl }}", "{{ range .list }}{{ range . }}{{ end }}{{ end }}", "{{ end }}", "{{ true }}{{ 1.5 }}{{ 'a' }}", "{{ and .a .list }}{{ index .map \"k\" }}{{ .map }}", "{{ block \"b\" . }}{{ end }}{{ define \"b\" }}x{{ end }}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		watch := newWatch(t.Context())
		watch.files = []string{"t"}
		calls := watch.calls()
		depth := 0
		var tpl func(text string, data any) (string, error)
		functions := template.FuncMap{"tpl": func(text string, data any) (string, error) { return tpl(text, data) }}
		for name, function := range calls {
			functions[name] = function
		}
		tpl = func(text string, data any) (string, error) {
			if depth++; depth > 20 {
				return "deep", nil
			}
			made, err := template.New("tpl").Option("missingkey=zero").Funcs(functions).Parse(text)
			if err != nil {
				return "", err
			}
			var buf strings.Builder
			err = made.Execute(&buf, data)
			return buf.String(), err
		}
		if strings.Contains(text, "range") && strings.ContainsAny(text, "0123456789") || strings.Contains(text, "template") && len(text) > 200 {
			t.Skip("may go on for ever without being watched")
		}
		woven, ok := watched(text, 0)
		if !ok {
			t.Skip("too deep")
		}
		want, wantFault := outcomeOf(text, functions)
		depth = 0
		got, fault := outcomeOf(woven, functions)
		if watch.failed != nil {
			t.Skip("ended")
		}
		if want != got || wantFault != fault {
			t.Errorf("of %q:\nunwatched %q %s\nwatched   %q %s\n%q", text, want, wantFault, got, fault, woven)
		}
		if wantFault == "" && len(watch.running) != 0 {
			t.Errorf("of %q: %d templates are still running", text, len(watch.running))
		}
		if strings.Count(text, "\n") != strings.Count(woven, "\n") {
			t.Errorf("lines have moved: %q", woven)
		}
	})
}

func TestTemplatesThatTextTemplateUnderstandsAreWatched(t *testing.T) {
	for _, text := range []string{"{{ range . }}a{{ end }}", "{{ define \"x\" }}a{{ end }}", "{{ .a }}", "{{ tpl .a . }}"} {
		if woven, _ := watched(text, 0); woven == text {
			t.Errorf("nothing was put into %q", text)
		}
	}
}
