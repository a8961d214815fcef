// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/bucket"
	"rukpak.io/rukpak/internal/content/objects/folder"
	"rukpak.io/rukpak/internal/content/objects/registry"
	"rukpak.io/rukpak/internal/controller/bundle"
	"rukpak.io/rukpak/internal/controller/gc"
)

// storeStall is how long a request to the shared store may go without a byte.
const storeStall = 30 * time.Second

// sharedStore opens the store that managers share, if there is one.
func sharedStore(ctx context.Context, mgr ctrl.Manager, disk *content.Disk, options Options) (*depot.Depot, error) {
	if options.SharedStore == "" {
		if options.SharedStoreCredentials != "" {
			return nil, errors.New("--shared-store-credentials: there is no --shared-store that they are for")
		}
		return nil, nil
	}
	place, err := placeOf(options.SharedStore, options.SharedStoreCredentials)
	if err != nil {
		return nil, fmt.Errorf("--shared-store %q: %w", hidden(options.SharedStore), err)
	}
	// One cluster is told from another by what lives as long as it does.
	system := &corev1.Namespace{}
	if err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		return nil, fmt.Errorf("find out which cluster the shared store is for: %w", err)
	}
	return depot.Open(ctx, disk, objects.Guard(place, objects.Patience{}), depot.Options{
		Cluster: string(system.UID), Log: mgr.GetLogger().WithName("shared-store"),
	}), nil
}

// hidden leaves out what does not belong into a flag, should it be there.
func hidden(flag string) string {
	if parsed, err := url.Parse(flag); err == nil {
		return parsed.Redacted()
	}
	return "..."
}

const storeForms = "s3://BUCKET/PREFIX?endpoint=URL&region=REGION, oci://HOST/REPOSITORY or file:///FOLDER"

// placeOf makes a place of what the flags say.
func placeOf(flag, credentials string) (objects.Backend, error) {
	at, err := url.Parse(flag)
	if err != nil {
		return nil, fmt.Errorf("it is no URL; it must be %s", storeForms)
	}
	if at.User != nil {
		return nil, errors.New("credentials do not belong into it; put them into files and name their folder with --shared-store-credentials")
	}
	if at.Fragment != "" {
		return nil, fmt.Errorf("it has a fragment %q; it must be %s", at.Fragment, storeForms)
	}
	switch at.Scheme {
	case "s3":
		return bucketOf(at, credentials)
	case "oci":
		return registryOf(at, credentials)
	case "file":
		return folderOf(at, credentials)
	}
	return nil, fmt.Errorf("its scheme is %q; it must be %s", at.Scheme, storeForms)
}

// parameters takes the query of a URL, each parameter once.
func parameters(at *url.URL, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return nil, errors.New("its parameters cannot be read")
	}
	for name, values := range query {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("it has the parameter %q; there are: %s", name, strings.Join(known, ", "))
		}
		if len(values) > 1 || values[0] == "" {
			return nil, fmt.Errorf("its parameter %q must have one value", name)
		}
	}
	return query, nil
}

func bucketOf(at *url.URL, credentials string) (objects.Backend, error) {
	query, err := parameters(at, "endpoint", "region")
	if err != nil {
		return nil, err
	}
	if at.Host == "" {
		return nil, fmt.Errorf("it names no bucket; it must be %s", storeForms)
	}
	endpoint, err := endpointOf(query.Get("endpoint"), query.Get("region"))
	if err != nil {
		return nil, err
	}
	keys, err := s3Keys(credentials)
	if err != nil {
		return nil, err
	}
	transport, err := storeTransport(credentials)
	if err != nil {
		return nil, err
	}
	return bucket.New(bucket.Options{
		Endpoint: endpoint.Host, Plain: endpoint.Scheme == "http", Region: query.Get("region"),
		Bucket: at.Host, Prefix: at.Path, Keys: keys, Transport: transport,
	})
}

func endpointOf(text, region string) (*url.URL, error) {
	if text == "" {
		if region == "" {
			return nil, errors.New("it needs the parameter endpoint, such as endpoint=https://minio.example.com:9000, or for AWS region=eu-west-1")
		}
		return &url.URL{Scheme: "https", Host: "s3." + region + ".amazonaws.com"}, nil
	}
	endpoint, err := url.Parse(text)
	if err != nil || endpoint.Host == "" || endpoint.User != nil || strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" {
		return nil, errors.New("its endpoint must be the URL of a service, such as https://minio.example.com:9000, without a path")
	}
	if endpoint.Scheme != "https" && endpoint.Scheme != "http" {
		return nil, fmt.Errorf("its endpoint has the scheme %q; it must be https or http", endpoint.Scheme)
	}
	return endpoint, nil
}

func registryOf(at *url.URL, credentials string) (objects.Backend, error) {
	query, err := parameters(at, "insecure")
	if err != nil {
		return nil, err
	}
	if insecure := query.Get("insecure"); insecure != "" && insecure != "true" {
		return nil, fmt.Errorf("its parameter insecure is %q; it must be true or left out", insecure)
	}
	repository := at.Host + strings.TrimSuffix(at.Path, "/")
	if at.Host == "" || strings.Trim(at.Path, "/") == "" {
		return nil, errors.New("it must name a host and a repository, such as oci://registry.example.com/rukpak/content")
	}
	if named, err := name.NewRepository(repository); err == nil && named.RegistryStr() != at.Host {
		return nil, fmt.Errorf("its host %q has neither a dot nor a port, and would stand for %s", at.Host, named.RegistryStr())
	}
	login, err := registryLogin(credentials, repository)
	if err != nil {
		return nil, err
	}
	transport, err := storeTransport(credentials)
	if err != nil {
		return nil, err
	}
	made, err := registry.New(registry.Options{Repository: repository, Plain: query.Get("insecure") == "true", Login: login, Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("it is no repository: %w", err)
	}
	return made, nil
}

func folderOf(at *url.URL, credentials string) (objects.Backend, error) {
	if _, err := parameters(at); err != nil {
		return nil, errors.New("a folder has no parameters")
	}
	if at.Host != "" || !strings.HasPrefix(at.Path, "/") || filepath.Clean(at.Path) == "/" {
		return nil, errors.New("it must name a folder by its whole path, such as file:///mnt/rukpak")
	}
	if credentials != "" {
		return nil, errors.New("a folder needs no --shared-store-credentials")
	}
	return folder.New(filepath.FromSlash(at.Path)), nil
}

func storeTransport(credentials string) (http.RoundTripper, error) {
	config, err := storeTLS(credentials)
	if err != nil {
		return nil, err
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	base = base.Clone()
	base.TLSClientConfig = config
	base.MaxIdleConnsPerHost = 16
	base.DisableCompression = true
	return objects.Transport(base, storeStall), nil
}

// shared is what the bundle controller is given: nil stays nil.
func (p *parts) shared() bundle.Shared {
	if p.depot == nil {
		return nil
	}
	return p.depot
}

// collectShared adds what collects the shared store, if there is one.
func (p *parts) collectShared(mgr ctrl.Manager) error {
	if p.depot == nil {
		return nil
	}
	return mgr.Add(&gc.SharedCollector{
		Client: mgr.GetClient(), Store: p.depot, Interval: p.options.CollectInterval, Log: mgr.GetLogger().WithName("gc"),
		Lost: func(name types.NamespacedName) { contents{p.store, p.lost}.Lost(name) },
	})
}
