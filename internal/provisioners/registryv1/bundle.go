// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// csv is a ClusterServiceVersion as far as it is rendered.
type csv struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		InstallModes []installMode        `json:"installModes"`
		CRDs         definitions          `json:"customresourcedefinitions"`
		APIServices  definitions          `json:"apiservicedefinitions"`
		Webhooks     []webhookDescription `json:"webhookdefinitions"`
		Install      struct {
			Strategy string `json:"strategy"`
			Spec     struct {
				Deployments        []deployment `json:"deployments"`
				Permissions        []permission `json:"permissions"`
				ClusterPermissions []permission `json:"clusterPermissions"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

type installMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

type definitions struct {
	Owned    []definition `json:"owned"`
	Required []definition `json:"required"`
}

// definition is one of a CustomResourceDefinition, or of the API of an API service.
type definition struct {
	Name           string `json:"name"`
	Group          string `json:"group"`
	Version        string `json:"version"`
	Kind           string `json:"kind"`
	DeploymentName string `json:"deploymentName"`
	ContainerPort  int32  `json:"containerPort"`
}

type deployment struct {
	Name  string            `json:"name"`
	Label map[string]string `json:"label"`
	Spec  map[string]any    `json:"spec"`
}

// permission has the fields of OLM's type in its order, since a name is made of their JSON.
type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// webhookDescription keeps what only the API server looks at as it stands.
type webhookDescription struct {
	GenerateName            string              `json:"generateName"`
	Type                    string              `json:"type"`
	DeploymentName          string              `json:"deploymentName"`
	ContainerPort           int32               `json:"containerPort"`
	TargetPort              *intstr.IntOrString `json:"targetPort"`
	Rules                   []map[string]any    `json:"rules"`
	FailurePolicy           *string             `json:"failurePolicy"`
	MatchPolicy             *string             `json:"matchPolicy"`
	ObjectSelector          map[string]any      `json:"objectSelector"`
	SideEffects             *string             `json:"sideEffects"`
	TimeoutSeconds          *int64              `json:"timeoutSeconds"`
	AdmissionReviewVersions []string            `json:"admissionReviewVersions"`
	ReinvocationPolicy      *string             `json:"reinvocationPolicy"`
	WebhookPath             *string             `json:"webhookPath"`
	ConversionCRDs          []string            `json:"conversionCRDs"`
}

const (
	validatingWebhook = "ValidatingAdmissionWebhook"
	mutatingWebhook   = "MutatingAdmissionWebhook"
	conversionWebhook = "ConversionWebhook"
)

// bundle is one bundle as it was read.
type bundle struct {
	packageName  string
	metadataFile string // that should name the package
	csv          csv
	csvPlace     parse.Place
	crds         []parse.Placed
	others       []parse.Placed
	properties   []property
	needs        []need
	leftOut      []string // files that are no manifests
	repeated     []string
	suggested    string // namespace
	faults       []*provisioner.InputError
}

func (b *bundle) fault(file string, line int, object, form string, args ...any) {
	b.faults = append(b.faults, &provisioner.InputError{File: file, Line: line, Object: object, Reason: fmt.Sprintf(form, args...)})
}

// faultOfCSV is about the ClusterServiceVersion.
func (b *bundle) faultOfCSV(form string, args ...any) {
	b.fault(b.csvPlace.File, b.csvPlace.Line, csvKind+" "+b.csv.Metadata.Name, form, args...)
}

// load reads a bundle. Faults of what it says are kept for check.
func load(ctx context.Context, content fs.FS, at root, namespace string) (*bundle, error) {
	if len(at.nested) > 0 {
		return nil, refuse(at.nested[0], "is a folder below that of the manifests, where a bundle may have none: move its files up to %s/", at.manifests)
	}
	read := parse.NewObjects(ID, namespace)
	if err := read.ReadAll(ctx, content, at.files); err != nil {
		return nil, err
	}
	if err := read.Refusal(); err != nil {
		return nil, err
	}
	b := &bundle{metadataFile: at.metadata, leftOut: append(at.others, read.Skipped...), repeated: read.Repeated}
	if err := b.sort(read.Found, at); err != nil {
		return nil, err
	}
	if err := b.readMetadata(ctx, content, at); err != nil {
		return nil, err
	}
	b.suggested = b.csv.Metadata.Annotations["operatorframework.io/suggested-namespace"]
	return b, nil
}

// sort tells the one ClusterServiceVersion from the definitions and all else.
func (b *bundle) sort(found []parse.Placed, at root) error {
	var versions []parse.Placed
	for _, one := range found {
		switch one.Object.GetKind() {
		case csvKind:
			versions = append(versions, one)
		case "CustomResourceDefinition":
			b.crds = append(b.crds, one)
		default:
			b.others = append(b.others, one)
		}
	}
	switch {
	case len(versions) == 0:
		return refuse(at.manifests, "there is no ClusterServiceVersion, of which a bundle has exactly one")
	case len(versions) > 1:
		return &provisioner.InputError{
			File: versions[1].Place.File, Line: versions[1].Place.Line, Object: csvKind + " " + versions[1].Object.GetName(),
			Reason: fmt.Sprintf("the bundle has a ClusterServiceVersion in %s already, and may have one: make two bundles of them", versions[0].Place),
		}
	}
	b.csvPlace = versions[0].Place
	if version := versions[0].Object.GetAPIVersion(); version != "operators.coreos.com/v1alpha1" {
		return refuse(b.csvPlace.File, "the ClusterServiceVersion is of %s, and not of operators.coreos.com/v1alpha1", version)
	}
	return decodeObject(versions[0], &b.csv)
}

func decodeObject(from parse.Placed, into any) error {
	encoded, err := json.Marshal(from.Object)
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, into); err != nil {
		return &provisioner.InputError{
			File: from.Place.File, Line: from.Place.Line, Object: provisioner.Describe(from.Object.Object),
			Reason: strings.TrimPrefix(err.Error(), "json: "),
		}
	}
	return nil
}

// modes are the install modes that the bundle supports.
func (b *bundle) modes() modes {
	var m modes
	for _, mode := range b.csv.Spec.InstallModes {
		if !mode.Supported {
			continue
		}
		switch mode.Type {
		case "OwnNamespace":
			m.own = true
		case "SingleNamespace":
			m.single = true
		case "MultiNamespace":
			m.multi = true
		case "AllNamespaces":
			m.all = true
		}
	}
	return m
}

// crd finds a definition of the bundle by its name.
func (b *bundle) crd(name string) *unstructured.Unstructured {
	for _, one := range b.crds {
		if one.Object.GetName() == name {
			return one.Object
		}
	}
	return nil
}

// notes tell what was not taken as it stands.
func (b *bundle) notes(namespace string) string {
	var lines []string
	if len(b.leftOut) > 0 {
		lines = append(lines, "Left out, since they are no objects: "+listed(b.leftOut)+".")
	}
	if len(b.repeated) > 0 {
		lines = append(lines, "A key is set twice, to the same value: "+listed(b.repeated)+".")
	}
	if b.suggested != "" && b.suggested != namespace {
		lines = append(lines, fmt.Sprintf("The bundle suggests the namespace %q; it is installed where the instance is.", b.suggested))
	}
	for _, one := range b.needs {
		lines = append(lines, fmt.Sprintf("Ignored, as the class says: %s wants %s %s.", one.file, one.kind, one.what))
	}
	return strings.Join(lines, "\n")
}
