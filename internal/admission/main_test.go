// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/assets"
)

// cluster has everything that `kubectl apply -k config/default` installs. Its tests do not run in parallel: classes
// are of the whole cluster, and which is the default one decides what the policies say.
var cluster = testenv.Shared{Options: testenv.Options{Controllers: true}, Setup: install}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // clients of controller-runtime complain without one
	os.Exit(cluster.Main(m))
}

// install applies the whole of RukPak and waits until the policies are in force.
func install(ctx context.Context, env *testenv.Env) error {
	dir, err := configDir("default")
	if err != nil {
		return err
	}
	if _, err := env.Kubectl(ctx, "apply", "-k", dir); err != nil {
		return err
	}
	begun := time.Now()
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, inForce(env)); err != nil {
		return fmt.Errorf("wait until the admission policies are in force: %w", err)
	}
	fmt.Printf("admission policies were in force %s after kubectl had ended\n", time.Since(begun).Round(10*time.Millisecond))
	return nil
}

// inForce looks whether an approval in another's name is refused, which all but a policy would let through, and whether
// the policies with parameters let a bundle through, which they do only when they know the kind of their parameters.
func inForce(env *testenv.Env) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		admin, err := client.New(env.Config(), client.Options{})
		if err != nil {
			return false, err
		}
		refused := admin.Create(ctx, object(approvalYAML("default", "nobody", "any")), client.DryRunAll)
		allowed := admin.Create(ctx, object(bundleYAML("default", "")), client.DryRunAll)
		return refused != nil && allowed == nil, nil
	}
}

func configDir(elements ...string) (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{root, "config"}, elements...)...), nil
}

// object reads one object from YAML that is part of a test.
func object(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		panic(fmt.Sprintf("%v in\n%s", err, text))
	}
	return object
}

func adminClient(t *testing.T, env *testenv.Env) client.Client {
	t.Helper()
	admin, err := client.New(env.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// mustCreate creates the object as administrator and removes it when the test ends.
func mustCreate(t *testing.T, env *testenv.Env, text string) *unstructured.Unstructured {
	t.Helper()
	admin, made := adminClient(t, env), object(text)
	if err := admin.Create(t.Context(), made); err != nil {
		t.Fatalf("create %s: %v", text, err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), made) }) // the test's context has ended
	return made
}

// expect tries until the outcome is the wanted one: "" for success, else a part of the error's text. What the API
// server knows of roles and classes lags behind by some milliseconds.
func expect(t *testing.T, want string, try func(ctx context.Context) error) {
	t.Helper()
	expectWithin(t, 10*time.Second, want, try)
}

func expectWithin(t *testing.T, limit time.Duration, want string, try func(ctx context.Context) error) {
	t.Helper()
	var got error
	met := func(ctx context.Context) (bool, error) {
		got = try(ctx)
		if want == "" {
			return got == nil, nil
		}
		return got != nil && strings.Contains(got.Error(), want), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true, met); err != nil {
		t.Errorf("got error %v, want %q", got, want)
	}
}

// dryCreate is a try for expect. Dry runs pass admission as others do, and leave nothing behind.
func dryCreate(as client.Client, text string) func(context.Context) error {
	return func(ctx context.Context) error { return as.Create(ctx, object(text), client.DryRunAll) }
}

// dryPatch is a try for expect: a merge patch, of a subresource unless that is "".
func dryPatch(as client.Client, target *unstructured.Unstructured, subresource, patch string) func(context.Context) error {
	return func(ctx context.Context) error {
		copied := target.DeepCopy()
		merge := client.RawPatch("application/merge-patch+json", []byte(patch))
		if subresource != "" {
			return as.SubResource(subresource).Patch(ctx, copied, merge, &client.SubResourcePatchOptions{
				PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
			})
		}
		return as.Patch(ctx, copied, merge, client.DryRunAll)
	}
}
