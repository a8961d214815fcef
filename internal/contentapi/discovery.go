// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

// discover tells which resources there are, in the form in which the API server
// asks for it.
func discover(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notFound("%s is only read", r.URL.Path)
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: contentv1.GroupVersion.String(), Version: contentv1.GroupVersion.Version}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     contentv1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}})
	case "/apis/" + group.Name:
		writeJSON(w, http.StatusOK, group)
	case "/apis/" + version.GroupVersion:
		writeJSON(w, http.StatusOK, resources())
	case "/healthz", "/livez", "/readyz":
		w.WriteHeader(http.StatusOK)
	default:
		return notFound("there is no %s here", r.URL.Path)
	}
	return nil
}

// resources leaves out bundles and instancerevisions themselves: "kubectl get
// bundles" is to mean those of rukpak.io.
func resources() metav1.APIResourceList {
	of := func(resource, sub, kind string, verbs ...string) metav1.APIResource {
		name := resource
		if sub != "" {
			name += "/" + sub
		}
		return metav1.APIResource{Name: name, SingularName: strings.TrimSuffix(name, "s"), Namespaced: true, Kind: kind, Verbs: verbs}
	}
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: contentv1.GroupVersion.String(),
		APIResources: []metav1.APIResource{
			of(contentv1.ResourceUploads, "", "Upload", "create"),
			of(contentv1.ResourceBundles, contentv1.Files, "FileList", "get"),
			of(contentv1.ResourceBundles, contentv1.Archive, "Archive", "get"),
			of(contentv1.ResourceRevisions, contentv1.Manifests, "List", "get"),
			of(contentv1.ResourceRevisions, contentv1.SecretManifests, "List", "get"),
			of(contentv1.ResourceRevisions, contentv1.Diff, "Plan", "get"),
		},
	}
	list.APIResources = append(list.APIResources,
		metav1.APIResource{Name: contentv1.ResourceProvisioners + "/" + contentv1.Work, Kind: "Job", Verbs: metav1.Verbs{"create", "get"}},
		metav1.APIResource{Name: contentv1.ResourceProvisioners + "/" + contentv1.Read, Kind: "ReadAnswer", Verbs: metav1.Verbs{"create"}})
	for i := 1; i < len(list.APIResources); i++ {
		list.APIResources[i].SingularName = ""
	}
	return list
}
