// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "rukpak.io", Version: "v1alpha1"}

// SchemeBuilder collects the functions that add this package to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds RukPak's kinds to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ProvisionerClass{}, &ProvisionerClassList{},
		&Bundle{}, &BundleList{},
		&BundleInstance{}, &BundleInstanceList{},
		&InstanceRevision{}, &InstanceRevisionList{},
		&Approval{}, &ApprovalList{},
		&RegistryConfig{}, &RegistryConfigList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
