// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/testenv"
)

func TestSecondApplyChangesNothing(t *testing.T) {
	for _, config := range []string{"default", "local"} {
		t.Run(config, func(t *testing.T) {
			out := kubectl(t, cluster.Env(t), "apply", "-k", mustDir(t, config))
			for line := range strings.Lines(out) {
				if !strings.HasSuffix(strings.TrimSpace(line), " unchanged") {
					t.Errorf("second apply: %s", line)
				}
			}
		})
	}
}

// One environment of its own: objects that were applied before would hide what the API server says of new ones.
func TestServerSideApplyFromScratchAndAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short does without")
	}
	env, err := testenv.Start(t.Context(), testenv.Options{NoBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	apply := []string{"apply", "--server-side", "-k", mustDir(t, "default"), "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{'\\n'}{end}"}
	// The status of new definitions is written by the API server itself, within moments.
	kubectl(t, env, apply...)
	kubectl(t, env, "wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=rukpak", "--timeout=60s")
	first := kubectl(t, env, apply...)
	if second := kubectl(t, env, apply...); first != second {
		t.Errorf("second server-side apply changed objects:\n%s\nwas:\n%s", second, first)
	}
}

func TestPersistentStoreReplacesTheTemporaryOne(t *testing.T) {
	env := cluster.Env(t)
	out := kubectl(t, env, "kustomize", filepath.Join("testdata", "persistent-store"))
	for _, want := range []string{"claimName: rukpak-content", "type: Recreate", "kind: PersistentVolumeClaim"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "sizeLimit: 10Gi") {
		t.Errorf("the temporary store is still there:\n%s", out)
	}
	if _, err := env.KubectlInput(t.Context(), out, "apply", "--dry-run=server", "-f", "-"); err != nil {
		t.Error(err)
	}
}

func TestSharedStoreIsGivenToTheManager(t *testing.T) {
	env := cluster.Env(t)
	out := kubectl(t, env, "kustomize", filepath.Join("testdata", "shared-store"))
	for _, want := range []string{"--shared-store=s3://", "--shared-store-credentials=/etc/rukpak/shared-store", "mountPath: /etc/rukpak/shared-store", "secretName: rukpak-shared-store", "replicas: 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, err := env.KubectlInput(t.Context(), out, "apply", "--dry-run=server", "-f", "-"); err != nil {
		t.Error(err)
	}
}

func TestAllThatIsInstalledSaysThatItIsPartOfRukpak(t *testing.T) {
	out := kubectl(t, cluster.Env(t), "kustomize", mustDir(t, "default"))
	for text := range strings.SplitSeq(out, "\n---\n") {
		if made := object(text); made.GetLabels()["app.kubernetes.io/part-of"] != "rukpak" {
			t.Errorf("%s %s has no label app.kubernetes.io/part-of=rukpak", made.GetKind(), made.GetName())
		}
	}
}

func TestAPIServerFindsNoFaultInThePolicies(t *testing.T) {
	env := cluster.Env(t)
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := env.NewClient(scheme)
	if err != nil {
		t.Fatal(err)
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	// The controller manager checks the types of the expressions in its own time.
	expect(t, "", func(ctx context.Context) error {
		return errUnchecked(&policies, admin.List(ctx, &policies, client.MatchingLabels{"app.kubernetes.io/part-of": "rukpak"}))
	})
	for _, policy := range policies.Items {
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", policy.Name, warning.FieldRef, warning.Warning)
		}
	}
}

func TestKubectlGetRukpakListsAllKindsWithTheirColumns(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	mustCreate(t, env, classYAML("listed", false, ""))
	mustCreate(t, env, revisionYAML(namespace, "app-1"))
	bundle := mustCreate(t, env, bundleYAML(namespace, "listed"))
	digest := "sha256:" + strings.Repeat("a", 64)
	kubectl(t, env, "patch", "bundle", bundle.GetName(), "-n", namespace, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status": {"provisionerClassName": "listed", "sources": [{"ref": "registry.example.com/app:v1", "digest": %q}], "content": {"digest": %q, "files": 3, "bytes": 10}}}`,
		digest, digest))
	for _, text := range []string{instanceYAML(namespace, template("listed")), approvalYAML(namespace, "admin", "listed")} {
		mustCreate(t, env, text)
	}
	// kubectl remembers for hours which kinds there are, and does not look again for a category that it does not know.
	kubectl(t, env, "api-resources", "--api-group=rukpak.io")
	out := kubectl(t, env, "get", "rukpak", "-n", namespace)
	for _, want := range []string{
		`NAME +PROVISIONER +APPROVAL +RECLAIM +READY +AGE`,
		`provisionerclass.rukpak.io/listed +plain.rukpak.io +Manual +Delete`,
		`NAME +CLASS +SOURCE +FILES +READY +REASON +AGE`,
		`bundle.rukpak.io/b-\w+ +listed +registry.example.com/app:v1 +3 `,
		`NAME +ACTIVE +PENDING +APPROVED +HEALTHY +READY +REASON +AGE`,
		`bundleinstance.rukpak.io/i-\w+ `,
		`NAME +INSTANCE +NUMBER +ADDED +CHANGED +REMOVED +APPROVED +ACTIVE +REASON +AGE`,
		`instancerevision.rukpak.io/app-1 +app +1 `,
		`NAME +REVISION +DECISION +APPROVER +COUNTED +REASON +AGE`,
		`approval.rukpak.io/a-\w+ +app-1 +Approve +admin`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no match of %q in\n%s", want, out)
		}
	}
	for short, kind := range map[string]string{"pclass": "provisionerclass", "bun": "bundle", "bi": "bundleinstance", "irev": "instancerevision", "appr": "approval"} {
		if got := kubectl(t, env, "get", short, "-n", namespace, "-o", "name"); !strings.HasPrefix(got, kind+".rukpak.io/") {
			t.Errorf("kubectl get %s gives %q, not a %s", short, got, kind)
		}
	}
}

func TestKubectlExplainsFields(t *testing.T) {
	env := cluster.Env(t)
	for field, want := range map[string]string{
		"provisionerclass.spec.approval.mode":             "Manual (the default",
		"bundle.spec.sources.oci.ref":                     "A tag is resolved to a digest once",
		"bundleinstance.spec.strategy.progressDeadline":   "The default is 10m",
		"bundleinstance.spec.config":                      "handed to the provisioner as it is",
		"instancerevision.status.plan.missingPermissions": "what the service account lacks",
		"approval.spec.approver":                          "the user who decides",
	} {
		out := strings.Join(strings.Fields(kubectl(t, env, "explain", field)), " ")
		if !strings.Contains(out, want) {
			t.Errorf("kubectl explain %s does not say %q:\n%s", field, want, out)
		}
	}
}

// errUnchecked is err, or else an error while the types of a policy have not been checked.
func errUnchecked(policies *admissionv1.ValidatingAdmissionPolicyList, err error) error {
	if err != nil {
		return err
	}
	for _, policy := range policies.Items {
		if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
			return fmt.Errorf("the types of %s are not checked yet", policy.Name)
		}
	}
	return nil
}

func kubectl(t *testing.T, env *testenv.Env, args ...string) string {
	t.Helper()
	out, err := env.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustDir(t *testing.T, elements ...string) string {
	t.Helper()
	dir, err := configDir(elements...)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
