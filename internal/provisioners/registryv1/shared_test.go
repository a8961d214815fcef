// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/testenv/realinput"
	"rukpak.io/rukpak/provisioner"
)

func request(content fs.FS, parameters, config string) provisioner.Request {
	req := provisioner.Request{Instance: types.NamespacedName{Namespace: "webhook-system", Name: "subject"}, Content: content}
	if parameters != "" {
		req.Parameters = []byte(parameters)
	}
	if config != "" {
		req.Config = []byte(config)
	}
	return req
}

func objectsOf(result provisioner.Result) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			all[object.GetKind()+" "+object.GetName()] = object.Object
		}
	}
	return all
}

// TestGoldenOutputOfOLM compares with what OLM v1 makes of the same bundle. Before that, what does not reach a cluster is taken
// off theirs: the namespace of kinds that have none, the empty status that comes of Go types, and null timestamps. Their
// output is without a maker of certificates, which is the parameter None here.
func TestGoldenOutputOfOLM(t *testing.T) {
	want := map[string]map[string]any{}
	files, err := filepath.Glob(filepath.Join(realinput.Path(t, "olm-golden/webhook-operator/0.0.5/all-webhook-types"), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, object); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(object.GetKind(), "Cluster") || strings.HasSuffix(object.GetKind(), "Configuration") {
			unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
		}
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(object.Object, "status")
		want[object.GetKind()+" "+object.GetName()] = object.Object
	}
	result, err := New().Render(t.Context(), request(os.DirFS(realinput.Path(t, "olm/webhook-operator/0.0.5")), `{"certificates": "None"}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, objectsOf(result)); diff != "" {
		t.Errorf("(-OLM +RukPak):\n%s", diff)
	}
}

// TestCertificatesOfTheRealBundle says all in which the other makers of certificates differ from the golden output.
func TestCertificatesOfTheRealBundle(t *testing.T) {
	content := os.DirFS(realinput.Path(t, "olm/webhook-operator/0.0.5"))
	render := func(parameters string, apis ...string) map[string]map[string]any {
		req := request(content, parameters, "")
		req.Cluster.APIs = apis
		result, err := New().Render(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return objectsOf(result)
	}
	none, builtIn, certManager := render(`{"certificates": "None"}`), render(""), render("", "cert-manager.io/v1")
	if diff := cmp.Diff(builtIn, render(`{"certificates": "BuiltIn"}`, "cert-manager.io/v1")); diff != "" {
		t.Errorf("Auto without cert-manager is not BuiltIn:\n%s", diff)
	}
	if diff := cmp.Diff(certManager, render(`{"certificates": "CertManager"}`)); diff != "" {
		t.Errorf("Auto with cert-manager is not CertManager:\n%s", diff)
	}
	const secret = "webhook-operator-controller-manager-service-cert"
	calling := []string{"CustomResourceDefinition webhooktests.webhook.operators.coreos.io", "MutatingWebhookConfiguration mwebhooktest-v1.kb.io", "ValidatingWebhookConfiguration vwebhooktest-v1.kb.io"}
	const deployment = "Deployment webhook-operator-controller-manager"
	for name, object := range none {
		for kind, other := range map[string]map[string]any{"BuiltIn": builtIn[name], "CertManager": certManager[name]} {
			if same := cmp.Equal(object, other); same == (name == deployment || slices.Contains(calling, name)) {
				t.Errorf("%s with %s: same as without is %t", name, kind, same)
			}
		}
	}
	annotation := func(objects map[string]map[string]any, name, key string) string {
		return (&unstructured.Unstructured{Object: objects[name]}).GetAnnotations()[key]
	}
	for _, name := range calling {
		if got := annotation(builtIn, name, provisioner.AnnotationServingCertificate); got != secret {
			t.Errorf("%s asks for the Secret %q", name, got)
		}
		if got := annotation(builtIn, name, injectAnnotation); got != "" {
			t.Errorf("%s asks cert-manager for %q, too", name, got)
		}
		if got := annotation(certManager, name, injectAnnotation); got != "webhook-system/"+secret {
			t.Errorf("%s asks cert-manager for %q", name, got)
		}
	}
	volumes, _, _ := unstructured.NestedSlice(builtIn[deployment], "spec", "template", "spec", "volumes")
	var names []any
	for _, volume := range volumes {
		fields := volume.(map[string]any)
		names = append(names, fields["name"], fields["secret"].(map[string]any)["secretName"])
	}
	if diff := cmp.Diff([]any{"webhook-cert", secret, "apiservice-cert", secret}, names); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if certManager["Certificate "+secret] == nil || certManager["Issuer "+objectName(secret, "selfsigned-issuer")] == nil {
		t.Error("cert-manager gets no Certificate or no Issuer")
	}
	if len(builtIn) != len(none) {
		t.Errorf("BuiltIn makes %d objects, want %d: the Secret is not rendered", len(builtIn), len(none))
	}
}

// TestRealBundles renders bundles as they were published, or says why OLM v1 cannot install them either.
func TestRealBundles(t *testing.T) {
	const v1beta1 = "is of apiextensions.k8s.io/v1beta1, which Kubernetes serves no more since 1.22"
	for name, test := range map[string]struct {
		config  string
		objects int
		refused []string
	}{
		"webhook-operator/0.0.1": {objects: 11}, // it brings a ClusterRole, too
		"webhook-operator/0.0.5": {objects: 10},
		"test-operator/1.0.0":    {objects: 9},
		"lib-bucket-provisioner/1.0.0": {refused: []string{
			"manifests/objectbucketclaims.objectbucket.io.crd.yaml:1: CustomResourceDefinition.apiextensions.k8s.io objectbucketclaims.objectbucket.io: " + v1beta1,
		}},
		"etcd/0.9.0":                      {refused: []string{"manifests/etcdbackup.crd.yaml:1", v1beta1}},
		"etcd/0.9.2":                      {refused: []string{v1beta1, "metadata/dependencies.yaml: wants olm.gvk.required testapi.v1.testapi.coreos.com", `wants olm.constraint require to have "certified"`}},
		"etcd":                            {refused: []string{"config: the content holds 2 bundles: set version to one of 0.9.0, 0.9.2"}},
		"prometheus/0.15.0":               {refused: []string{v1beta1}},
		"prometheus/0.22.2":               {refused: []string{v1beta1, "wants olm.package.required testoperator > 0.2.0"}},
		"aqua-packagemanifests":           {refused: []string{"config: the content holds 4 bundles: set version to one of 0.0.1, 0.0.2, 1.0.0, 1.0.1"}},
		"aqua-packagemanifests/1.0.1":     {refused: []string{v1beta1}},
		"configmap-bundles/multiple-csvs": {refused: []string{"bundle-with-multiple-csvs.cm.yaml:1: ConfigMap kube-system/ocs: holds a bundle in its keys"}},
		"configmap-bundles/bad-resource":  {refused: []string{"bundle-with-bad-resource.cm.yaml:1: ConfigMap kube-system/ocs: holds a bundle in its keys"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := New().Render(t.Context(), request(os.DirFS(realinput.Path(t, "olm/"+name)), "", test.config))
			mentions(t, err, test.refused)
			if got := len(objectsOf(result)); got != test.objects {
				t.Errorf("%d objects, want %d", got, test.objects)
			}
		})
	}
}

func mentions(t *testing.T, err error, parts []string) {
	t.Helper()
	if len(parts) == 0 && err != nil {
		t.Error(err)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) || !provisioner.IsInputError(err) {
			t.Errorf("got %v, want %q", err, part)
		}
	}
}

// modern is a tree whose definitions of v1beta1 are written as v1, as their authors would do it, and which says its install
// modes, so that what else is in old bundles can be tried.
func modern(t *testing.T, folder string) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if strings.Contains(string(data), "apiextensions.k8s.io/v1beta1") && strings.Contains(string(data), "\nkind: CustomResourceDefinition") {
			data = modernDefinition(t, data)
		}
		if text := string(data); strings.Contains(text, "kind: "+csvKind) && !strings.Contains(text, "installModes") && !strings.Contains(folder, "invalid_csv") {
			data = []byte(strings.Replace(text, "\nspec:", "\nspec:\n  installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}]", 1))
		}
		tree[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func modernDefinition(t *testing.T, data []byte) []byte {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	object["apiVersion"] = "apiextensions.k8s.io/v1"
	spec := object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if versions == nil {
		versions = []any{map[string]any{"name": spec["version"], "served": true, "storage": true}}
	}
	for _, version := range versions {
		version.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	}
	spec["versions"] = versions
	delete(spec, "version")
	delete(spec, "validation")
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// TestOldBundlesMadeModern renders old bundles once they have what OLM v1 asks for, and finds what else is wrong with invalid ones.
func TestOldBundlesMadeModern(t *testing.T) {
	for name, test := range map[string]struct {
		parameters, config string
		objects            int
		refused            []string
	}{
		"prometheus/0.15.0":            {"", `{"watchNamespace": "webhook-system"}`, 11, nil},
		"prometheus/0.22.2":            {`{"constraints": "Ignore"}`, `{"watchNamespace": "elsewhere"}`, 11, nil},
		"etcd/0.9.0":                   {"", `{"watchNamespace": "webhook-system"}`, 7, nil},
		"lib-bucket-provisioner/1.0.0": {"", "", 8, nil},
		"aqua-packagemanifests":        {"", `{"version": "1.0.1", "watchNamespace": "webhook-system"}`, 13, nil},
		"invalid/invalid_bundle_2":     {"", `{"watchNamespace": "webhook-system"}`, 7, nil}, // upstream warns only, too

		"invalid/invalid_annotation_name":                        {refused: []string{"etcdoperator.v0.9.4.clusterserviceversion.yaml:1", "write olm.operatorGroup", "write olm.operatorNamespace", "write olm.skipRange"}},
		"invalid/invalid_bundle":                                 {refused: []string{`etcdoperator.v0.9.4.clusterserviceversion.yaml:1: ClusterServiceVersion etcdoperator.v0.9.4: owns the CustomResourceDefinition "etcdclusters.etcd.database.coreos.com", which is not in the bundle`}},
		"invalid/invalid_crd":                                    {refused: []string{"etcdrestores.etcd.database.coreos.com.crd.yaml:1", "there is a version \"v1beta2\" already"}},
		"invalid/invalid_csv":                                    {refused: []string{"etcdoperator.v0.9.4.clusterserviceversion.yaml:1", "installModes: no mode is supported"}},
		"invalid/invalid_sa":                                     {refused: []string{"etcd.serviceaccount.yaml:1: ServiceAccount etcd: metadata.namespace is a number, not text"}},
		"invalid/invalid_type":                                   {refused: []string{"etcd.resourcequota.yaml:1: ResourceQuota", "the kind ResourceQuota may not be in a bundle of OLM"}},
		"invalid/annotations_bundle":                             {refused: []string{`metadata/annotations.yaml: operators.operatorframework.io.bundle.mediatype.v1 is "registry+v2"`}},
		"invalid/dependencies_bundle/invalid_dependency_type":    {refused: []string{`metadata/dependencies.yaml: dependencies[0]: the type "olm.crd" is not known`}},
		"invalid/dependencies_bundle/invalid_gvk_dependency":     {refused: []string{"metadata/dependencies.yaml: dependencies[0]: olm.gvk needs group, version and kind"}},
		"invalid/dependencies_bundle/invalid_label_dependency":   {refused: []string{"metadata/dependencies.yaml: dependencies[0]: olm.label needs label"}},
		"invalid/dependencies_bundle/invalid_package_dependency": {refused: []string{"dependencies[0]: olm.package needs packageName and version", "dependencies[2]: olm.package needs packageName and version"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := New().Render(t.Context(), request(modern(t, realinput.Path(t, "olm/"+name)), test.parameters, test.config))
			mentions(t, err, test.refused)
			if got := len(objectsOf(result)); got != test.objects {
				t.Errorf("%d objects, want %d", got, test.objects)
			}
			if err == nil && !json.Valid(result.ConfigSchema) {
				t.Errorf("the schema is %s", result.ConfigSchema)
			}
		})
	}
}

// TestInvalidBundlesAsTheyAre holds that none of upstream's invalid ones gets through.
func TestInvalidBundlesAsTheyAre(t *testing.T) {
	root := realinput.Path(t, "olm/invalid")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		folders := []string{entry.Name()}
		if entry.Name() == "dependencies_bundle" {
			folders = nil
			inner, err := os.ReadDir(filepath.Join(root, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range inner {
				folders = append(folders, path.Join(entry.Name(), one.Name()))
			}
		}
		for _, folder := range folders {
			if _, err := New().Render(t.Context(), request(os.DirFS(filepath.Join(root, folder)), "", "")); !provisioner.IsInputError(err) {
				t.Errorf("%s: got %v", folder, err)
			}
		}
	}
}
