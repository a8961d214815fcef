// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/cluster"
	"rukpak.io/rukpak/internal/cluster/roles"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/controller/bundle"
	"rukpak.io/rukpak/internal/controller/certificate"
	"rukpak.io/rukpak/internal/controller/class"
	"rukpak.io/rukpak/internal/controller/gc"
	"rukpak.io/rukpak/internal/controller/instance"
	notice "rukpak.io/rukpak/internal/controller/notify"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/controller/registryconfig"
	"rukpak.io/rukpak/internal/controller/revision"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/metrics"
	"rukpak.io/rukpak/internal/notify"
	"rukpak.io/rukpak/internal/provisioners"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/watch"
	"rukpak.io/rukpak/provisioner"
)

// parts are made once and shared by the controllers.
type parts struct {
	options  Options
	store    *content.Disk
	depot    *depot.Depot // nil if the store is not shared
	lost     chan event.GenericEvent
	metrics  *metrics.Metrics
	watcher  *watch.Watcher
	accounts *identity.Clients
	reviewer *identity.Reviewer
	finder   *revision.Finder
	facts    *cluster.Facts
	roles    *roles.Live // nil if they are not read
	engine   *activate.Engine
	stored   *revision.Manifests
	opener   *origin.Opener
	jobs     *remote.Broker // of provisioners outside of this manager

	registries    *reach.Config
	registryFiles *registryconfig.Files
}

func newParts(ctx context.Context, mgr ctrl.Manager, options Options) (*parts, error) {
	p := &parts{options: options, lost: make(chan event.GenericEvent, 64)}
	var err error
	if p.store, err = content.OpenDisk(ctx, options.Store, content.Options{}); err != nil {
		return nil, fmt.Errorf("open the content store %q: %w", options.Store, err)
	}
	if p.depot, err = sharedStore(ctx, mgr, p.store, options); err != nil {
		return nil, err
	}
	if p.metrics, err = metrics.New(ctrlmetrics.Registry); err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	objects, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make the client of the watch: %w", err)
	}
	p.watcher = watch.New(watch.Config{
		Client: objects, Mapper: mgr.GetRESTMapper(), Namespace: options.onlyNamespace(), Log: mgr.GetLogger().WithName("watch"),
	})
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make the discovery client: %w", err)
	}
	p.facts = cluster.NewFacts(kinds)
	if p.roles, err = roles.New(ctx, mgr.GetCache()); err != nil {
		return nil, err
	}
	p.finder = &revision.Finder{Discovery: kinds, Metadata: objects, Namespaces: options.Namespaces}
	if p.accounts, err = identity.NewClients(mgr.GetConfig(), mgr.GetScheme(), mgr.GetRESTMapper()); err != nil {
		return nil, fmt.Errorf("make the clients of service accounts: %w", err)
	}
	p.reviewer = identity.NewReviewer(mgr.GetClient())
	p.engine = activate.New(activate.Config{Observed: p.watcher, Served: activate.ServedBy(kinds)})
	p.stored = revision.NewManifests(mgr.GetAPIReader())
	p.registries = reach.New(toRegistries())
	if p.registryFiles, err = registryFiles(ctx, mgr, options); err != nil {
		return nil, err
	}
	p.opener = newOpener(mgr.GetAPIReader(), p.store, options.Limits, p.registries)
	p.opener.Lost = contents{p.store, p.lost}.Lost
	p.opener.Namespace = options.ownNamespace()
	p.jobs = remote.New(remote.Options{Own: provisioners.IDs(), Log: mgr.GetLogger().WithName("provisioners")})
	return p, nil
}

// register adds everything that runs to the manager.
func (p *parts) register(mgr ctrl.Manager) error {
	own, err := ownProvisioners(mgr, p.options)
	if err != nil {
		return err
	}
	served := served{own, p.jobs}
	registrations := []func() error{
		func() error { return mgr.Add(p.watcher) },
		func() error {
			return mgr.Add(&gc.Collector{Client: mgr.GetClient(), Store: p.store, Interval: p.options.CollectInterval, Log: mgr.GetLogger().WithName("gc")})
		},
		func() error { return mgr.Add(p.jobs) },
		func() error { return p.collectShared(mgr) },
		func() error {
			return (&class.Controller{Client: mgr.GetClient(), Provisioners: served}).Register(mgr)
		},
		func() error {
			return (&bundle.Controller{
				Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("bundle"), Sources: p.opener, Contents: p.store, Shared: p.shared(),
				Metrics: p.metrics, Limits: p.options.Limits, Lost: p.lost, Workers: p.options.Workers,
			}).Register(mgr)
		},
		func() error {
			return (&instance.Controller{
				Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("instance"),
				Provisioners: served, Contents: contents{p.store, p.lost}, Scopes: scopes{mgr.GetRESTMapper()},
				Accounts: p.accounts, Facts: p.facts,
				Follower: follower{p.opener, p.store, p.options.Limits},
				Planner:  &planner{p, mgr.GetClient(), mgr.GetAPIReader(), mgr.GetRESTMapper()}, Workers: p.options.Workers,
			}).Register(mgr)
		},
		func() error { return p.revisions(mgr).Register(mgr, p.watcher) },
		func() error { return p.certificates(mgr).Register(mgr, p.watcher) },
		func() error { return p.notices(mgr).Register(mgr) },
		func() error { return p.registryConfig(mgr) },
		func() error { return p.contentAPI(mgr) },
		func() error { return p.artifacts(mgr) },
	}
	for _, register := range registrations {
		if err := register(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parts) revisions(mgr ctrl.Manager) *revision.Controller {
	return &revision.Controller{
		Client:    mgr.GetClient(),
		Live:      mgr.GetAPIReader(),
		Recorder:  mgr.GetEventRecorder("revision"),
		Accounts:  p.accounts,
		Reviewer:  reviewer{p.reviewer, mgr.GetRESTMapper()},
		Engine:    p.engine,
		Watcher:   p.watcher,
		Manifests: p.stored,
		Finder:    p.finder,
		Metrics:   p.metrics,
		Workers:   p.options.Workers,
		Confined:  p.options.confined(),
	}
}

func (p *parts) certificates(mgr ctrl.Manager) *certificate.Controller {
	return &certificate.Controller{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("certificate"), Accounts: p.accounts, Manifests: phases{p.stored}, Workers: p.options.Workers,
	}
}

func (p *parts) notices(mgr ctrl.Manager) *notice.Controller {
	return &notice.Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Sender: &notify.Sender{}, Metrics: p.metrics, Namespace: p.options.ownNamespace(),
	}
}

// phases gives the manifests of a revision as who asks for certificates needs them.
type phases struct{ stored *revision.Manifests }

func (p phases) Phases(ctx context.Context, of *v1alpha1.InstanceRevision) ([]provisioner.Phase, error) {
	loaded, err := p.stored.Load(ctx, of)
	if err != nil {
		return nil, err
	}
	return loaded.Phases, nil
}

// contents tells the bundle controller what the instance controller misses.
type contents struct {
	store content.Store
	lost  chan<- event.GenericEvent
}

func (c contents) Open(ctx context.Context, tree digest.Digest) (fs.FS, error) {
	return c.store.Open(ctx, tree)
}

func (c contents) Lost(name types.NamespacedName) {
	bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	select {
	case c.lost <- event.GenericEvent{Object: bundle}:
	default: // The instance is tried again, and asks again.
	}
}
