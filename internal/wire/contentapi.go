// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/contentapi"
)

// contentAPI adds the content API, unless the manager is to have none.
func (p *parts) contentAPI(mgr ctrl.Manager) error {
	if p.options.ContentAddress == "0" {
		return nil
	}
	api, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make the client of the content API: %w", err)
	}
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make the client of the content API: %w", err)
	}
	server, err := contentapi.New(contentapi.Config{
		Address: p.options.ContentAddress, Advertise: p.options.ContentAdvertise,
		API: api, Client: mgr.GetClient(), Live: live,
		Contents: p.store, Lost: contents{p.store, p.lost}.Lost,
		Limits: p.options.Limits, Metrics: p.metrics, Log: mgr.GetLogger().WithName("content-api"),
	})
	if err != nil {
		return err
	}
	return mgr.Add(server)
}
