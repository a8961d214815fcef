// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/contentapi"
	"rukpak.io/rukpak/internal/controller/publish"
)

// artifacts adds what publishes Bundles to Flux, and serves their archives unless
// the manager is to serve none.
func (p *parts) artifacts(mgr ctrl.Manager) error {
	live, err := p.live(mgr)
	if err != nil {
		return err
	}
	controller := &publish.Controller{Client: mgr.GetClient(), Live: live, Recorder: mgr.GetEventRecorder("publish"), Workers: p.options.Workers}
	if p.options.ArtifactAddress != "0" {
		if base, err := url.Parse(p.options.ArtifactURL); err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
			return fmt.Errorf("--artifact-base-url %q is not a URL that Flux could fetch from, such as http://rukpak-content.rukpak-system.svc", p.options.ArtifactURL)
		}
		served := &contentapi.Artifacts{
			Address: p.options.ArtifactAddress, BaseURL: p.options.ArtifactURL, Client: mgr.GetClient(),
			Contents: p.store, Lost: contents{p.store, p.lost}.Lost, Log: mgr.GetLogger().WithName("artifacts"),
		}
		controller.Artifacts = served
		if err := mgr.Add(served); err != nil {
			return err
		}
	}
	return controller.Register(mgr)
}

// live makes a client that reads nothing from caches.
func (p *parts) live(mgr ctrl.Manager) (client.Client, error) {
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make the client of the content API: %w", err)
	}
	return live, nil
}

// contentAPI adds the content API, unless the manager is to have none.
func (p *parts) contentAPI(mgr ctrl.Manager) error {
	if p.options.ContentAddress == "0" {
		return nil
	}
	api, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make the client of the content API: %w", err)
	}
	live, err := p.live(mgr)
	if err != nil {
		return err
	}
	server, err := contentapi.New(contentapi.Config{
		Address: p.options.ContentAddress, Advertise: p.options.ContentAdvertise, Artifacts: p.options.ArtifactAddress,
		API: api, Client: mgr.GetClient(), Live: live,
		Contents: p.store, Lost: contents{p.store, p.lost}.Lost,
		Jobs: p.jobs, Limits: p.options.Limits, Metrics: p.metrics, Log: mgr.GetLogger().WithName("content-api"),
	})
	if err != nil {
		return err
	}
	return mgr.Add(server)
}
