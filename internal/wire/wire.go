// SPDX-License-Identifier: Apache-2.0

// Package wire is the one explicit list of what a manager is made of: sources,
// provisioners and controllers. Nothing registers itself; what is not named
// here does not run.
package wire

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cluster/roles"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/unpack"
)

// Options are what a manager can be told.
type Options struct {
	Version string
	Store   string // folder of the content store
	// SharedStore is the URL of a store that managers share, "" for none, and
	// SharedStoreCredentials a folder with files of a Secret for it, "" for none.
	SharedStore            string
	SharedStoreCredentials string
	MetricsAddress         string // "0" for none
	HealthAddress          string // "0" for none
	// ContentAddress is where the content API listens, "0" for nowhere, and
	// ContentAdvertise the IP address that its Service is to lead to.
	ContentAddress   string
	ContentAdvertise string
	// ArtifactAddress is where archives for Flux are served, "0" for nowhere, and
	// ArtifactURL how Flux reaches it.
	ArtifactAddress string
	ArtifactURL     string
	LeaderElection  bool
	LeaderNamespace string
	// RegistryFiles is "FORMAT=PATH" of registry configuration of the node, and
	// RegistryNamespace where what RegistryConfigs name stands.
	RegistryFiles     string
	RegistryNamespace string
	// What rendering templates and overlays may take; see sandbox.Options.
	RenderProcesses int
	RenderMemory    int64
	RenderCPU       time.Duration
	// Namespaces are those that the manager is confined to; none means all.
	Namespaces      []string
	Workers         int // objects of a kind that are reconciled at the same time
	CollectInterval time.Duration
	Limits          unpack.Limits // on the content of one bundle
}

// Scheme has RukPak's kinds and those of Kubernetes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// Run runs a manager until ctx ends.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	if err := options.check(); err != nil {
		return err
	}
	// The API server protects itself by priority and fairness; a limit here
	// would only delay what it has room for.
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = "rukpak/" + options.Version
	mgr, err := newManager(config, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	parts, err := newParts(ctx, mgr, options)
	if err != nil {
		return err
	}
	if err := parts.register(mgr); err != nil {
		return err
	}
	if err := addProbes(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, options Options) (ctrl.Manager, error) {
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:                        Scheme(),
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:        options.HealthAddress,
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              "manager.rukpak.io",
		LeaderElectionNamespace:       options.LeaderNamespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{ByObject: options.confine(named()), DefaultNamespaces: inNamespaces(options.Namespaces)},
		Client: client.Options{Cache: &client.CacheOptions{
			// Read when needed: holding every Secret of the cluster in memory is neither cheap nor safe.
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}},
		}},
	})
}

// named is how ConfigMaps and Secrets are watched that instances name in their configuration: what they are called and
// that they changed is all that is held. Manifests, ours and Helm's, are many and nobody's configuration.
func named() map[client.Object]cache.ByObject {
	metadata := func(kind string) client.Object {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	}
	bare := func(object any) (any, error) {
		full, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return object, nil
		}
		return &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
		}}, nil
	}
	var others []fields.Selector
	for _, kind := range []string{string(manifest.TypeOf(manifest.KindManifest)), string(manifest.TypeOf(manifest.KindPlan)), "helm.sh/release.v1"} {
		others = append(others, fields.OneTermNotEqualSelector("type", kind))
	}
	held := roles.ByObject()
	held[metadata("ConfigMap")] = cache.ByObject{Transform: bare}
	held[metadata("Secret")] = cache.ByObject{Transform: bare, Field: fields.AndSelectors(others...)}
	return held
}

// addProbes makes the manager ready when its caches are.
func addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return fmt.Errorf("the caches are not filled yet")
		}
		return nil
	})
}
