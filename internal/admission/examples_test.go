// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestExamplesAreAcceptedByKubectl(t *testing.T) {
	env := cluster.Env(t)
	examples := filepath.Join(mustDir(t), "..", "examples")
	t.Cleanup(func() {
		_, _ = env.Kubectl(context.Background(), "delete", "-f", filepath.Join(examples, "notes", "v2"), "--wait=false", "--ignore-not-found")
	})
	for _, version := range []string{"v1", "v2"} { // the second over the first
		t.Run("notes "+version, func(t *testing.T) {
			// For real, in order and with the namespace first, as its objects are needed to accept others.
			files := filepath.Join(examples, "notes", version)
			kubectl(t, env, "apply", "--server-side", "-f", filepath.Join(files, "namespace.yaml"), "-f", filepath.Join(files, "crd.yaml"))
			kubectl(t, env, "wait", "--for=condition=Established", "crd/notebooks.notes.example.com", "--timeout=30s")
			kubectl(t, env, "apply", "--server-side", "--validate=strict", "-f", files)
		})
	}
	t.Run("getting-started", func(t *testing.T) {
		files := filepath.Join(examples, "getting-started")
		kubectl(t, env, "apply", "--validate=strict", "-f", filepath.Join(files, "users.yaml"))
		kubectl(t, env, "apply", "--validate=strict", "-f", files)
		t.Cleanup(func() { _, _ = env.Kubectl(context.Background(), "delete", "-f", files, "--wait=false") })

		class, instance := filepath.Join(files, "class.yaml"), filepath.Join(files, "instance.yaml")
		for _, test := range []struct {
			name, user, group string
			args              []string
			want              string
		}{
			{"the team may write the instance", "ann", "team-a", []string{"apply", "--dry-run=server", "-f", instance}, ""},
			{"reviewers may not", "bob", "reviewers", []string{"delete", "--dry-run=server", "-f", instance}, "forbidden"},
			{"the team may not write the class", "ann", "team-a", []string{"delete", "--dry-run=server", "-f", class}, "forbidden"},
		} {
			t.Run(test.name, func(t *testing.T) {
				_, err := env.Kubectl(t.Context(), append(test.args, "--as="+test.user, "--as-group="+test.group, "--as-group=system:authenticated")...)
				if got := errorText(err); test.want == "" && err != nil || !strings.Contains(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		}
		approval := approvalYAML("team-a", "bob", "plain")
		for user, want := range map[string]string{"bob reviewers": "", "ann team-a": "forbidden"} {
			name, group, _ := strings.Cut(user, " ")
			text := strings.Replace(approval, `"bob"`, `"`+name+`"`, 1)
			_, err := env.KubectlInput(t.Context(), text, "create", "--dry-run=server", "-f", "-", "--as="+name, "--as-group="+group, "--as-group=system:authenticated")
			if got := errorText(err); want == "" && err != nil || !strings.Contains(got, want) {
				t.Errorf("approval by %s: got %q, want %q", user, got, want)
			}
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
