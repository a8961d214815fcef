// SPDX-License-Identifier: Apache-2.0

// Command manager runs RukPak's controllers. It reads its flags and hands over
// to package wire, the one place that knows all parts.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"rukpak.io/rukpak/internal/sandbox"
	"rukpak.io/rukpak/internal/wire"
)

// version is set by the linker.
var version = "dev"

func main() {
	if len(os.Args) == 2 && os.Args[1] == sandbox.Argument {
		os.Exit(wire.Render()) // this is a process of a manager
	}
	options := wire.Options{Version: version}
	flag.StringVar(&options.Store, "store", "/var/lib/rukpak", "folder of the content store; a cache that may be lost")
	flag.StringVar(&options.SharedStore, "shared-store", "", "store that managers share behind their own, which is then a cache of it: s3://BUCKET/PREFIX?endpoint=URL&region=REGION, oci://HOST/REPOSITORY or file:///FOLDER; not set means none")
	flag.StringVar(&options.SharedStoreCredentials, "shared-store-credentials", "", "folder with the credentials of the shared store, such as a mounted Secret: accessKey, secretKey, sessionToken; username, password or .dockerconfigjson; ca.crt, tls.crt, tls.key")
	flag.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 for none")
	flag.StringVar(&options.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flag.StringVar(&options.ContentAddress, "content-api-bind-address", ":8443", "address of the content API, served by the manager that leads; 0 for none")
	flag.StringVar(&options.ContentAdvertise, "content-api-advertise-address", "", "IP address at which the API server reaches the content API, put behind its Service; not set where others do that")
	flag.StringVar(&options.ArtifactAddress, "artifact-bind-address", "0", "address at which archives of bundles that are published to Flux are served, by plain HTTP and under URLs that cannot be guessed; 0 for none")
	flag.StringVar(&options.ArtifactURL, "artifact-base-url", "http://rukpak-content.rukpak-system.svc", "URL by which Flux reaches the artifacts")
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "let only one of several managers act")
	flag.StringVar(&options.LeaderNamespace, "leader-election-namespace", "", "namespace of the lease; not set means the manager's own")
	flag.IntVar(&options.Workers, "workers", 8, "number of objects of a kind that are reconciled at the same time")
	flag.DurationVar(&options.CollectInterval, "collect-interval", 10*time.Minute, "time between two collections of unused content")
	flag.StringVar(&options.RegistryFiles, "registry-config", "", "FORMAT=PATH of registry configuration of the node that RegistryConfig objects override, such as containers=/etc/containers or containerd=/etc/containerd; files that do not parse stop the manager")
	flag.StringVar(&options.RegistryNamespace, "registry-config-namespace", "", "namespace of the Secrets and ConfigMaps that RegistryConfig objects name; not set means rukpak-system")
	flag.Func("namespaces", "namespaces to which the manager is confined, with commas; not set means all", options.SetNamespaces)
	flag.IntVar(&options.RenderProcesses, "render-processes", 2, "processes that render templates and overlays at the same time")
	flag.Func("render-memory", "most memory of one such process, such as 384Mi, which is the default", options.SetRenderMemory)
	flag.DurationVar(&options.RenderCPU, "render-cpu", 30*time.Second, "most time of a processor that one rendering of templates and overlays may take")
	options.Limits.Register(flag.CommandLine)
	printVersion := flag.Bool("version", false, "print the version and exit")
	// What fails to be reconciled is as a rule a user's mistake, about which a stack of calls says nothing.
	logging := zap.Options{StacktraceLevel: zapcore.PanicLevel}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if *printVersion {
		fmt.Println(version)
		return
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(options wire.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	return wire.Run(ctrl.SetupSignalHandler(), config, options)
}
