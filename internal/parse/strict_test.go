// SPDX-License-Identifier: Apache-2.0

package parse

import "testing"

func TestStrictSaysWhatIsWrongInWordsOfYAML(t *testing.T) {
	type image struct {
		Name   string `json:"name"`
		NewTag string `json:"newTag"`
	}
	type common struct {
		Labels map[string]string `json:"labels"`
	}
	type tree struct {
		Leaf  string           `json:"leaf"`
		Below map[string]*tree `json:"below"`
		Next  *tree            `json:"next"`
	}
	type options struct {
		common `json:",inline"`
		Images []image          `json:"images"`
		By     map[string]image `json:"by"`
		Count  *int             `json:"count"`
		On     bool             `json:"on"`
		Tree   *tree            `json:"tree"`
	}
	for raw, want := range map[string]string{
		`{}`:                               "",
		`null`:                             "",
		`{"images": [{"newTag": 1.10}]}`:   "config: images.newTag is a number, and has to be a text: put it in quotes",
		`{"images": {"newTag": "1"}}`:      "config: images is a mapping, and has to be a list",
		`{"labels": {"a": true}}`:          "config: labels is true or false, and has to be a text: put it in quotes",
		`{"count": "3"}`:                   "config: count is a text, and has to be a number",
		`{"count": 3.5}`:                   "config: count is a number, and has to be a number",
		`{"on": "yes"}`:                    "config: on is a text, and has to be true or false",
		`[]`:                               "config: it is a list, and has to be a mapping",
		`{"image": []}`:                    `config: unknown field "image": there are the known`,
		`{"Images": []}`:                   `config: unknown field "Images": there are the known`,
		`{"images": [{"newtag": "1"}]}`:    `config: unknown field "images[0].newtag": there are name, newTag`,
		`{"by": {"a": {"newtag": "1"}}}`:   `config: unknown field "by.a.newtag": there are name, newTag`,
		`{"tree": {"next": {"Leaf": ""}}}`: `config: unknown field "tree.next.Leaf": there are leaf, below, next`,
		`{"count": 1, "count": 2}`:         `config: duplicate field "count"`,
		`{"images": [{"name": "a"}, null`:  "config: unexpected end of JSON input",
	} {
		t.Run(raw, func(t *testing.T) {
			got := ""
			if err := Strict([]byte(raw), &options{}, "config", "the known"); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
