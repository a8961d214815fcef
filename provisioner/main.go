// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
)

// Main makes a program of a provisioner: it serves its ID for the RukPak of a cluster until it gets SIGTERM or an interrupt,
// and then exits. RukPak fetches the content, plans, asks for approval, activates and watches.
//
//	func main() { provisioner.Main(mine.New()) }
//
// The cluster is that of --kubeconfig, of $KUBECONFIG, or the one in which the program runs. Its user needs the verbs
// "create" and "get" on provisioners/work of the group content.rukpak.io, for the name of the ID; and, if the provisioner
// uses Request.Reader, "create" on provisioners/read. No port has to be open, and no Secret can be read.
//
// Main parses the flags of package flag, to which a program may have added some of its own. Who needs more control uses
// Serve.
func Main(p Provisioner) {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster; not set means $KUBECONFIG, and else the cluster in which this program runs")
	options := ServeOptions{}
	flag.IntVar(&options.Workers, "workers", usualWorkers, "number of renderings at the same time")
	flag.StringVar(&options.HealthAddress, "health-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flag.StringVar(&options.Dir, "dir", "", "folder for content while it is rendered; not set means a temporary one")
	text := flag.Bool("log-text", false, "write the log as text for people, not as JSON")
	flag.Parse()
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, nil)
	if *text {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	options.Log = slog.New(handler)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := serveFrom(ctx, *kubeconfig, p, options)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.ID(), err)
		os.Exit(1)
	}
}

func serveFrom(ctx context.Context, kubeconfig string, p Provisioner, options ServeOptions) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("find the API server (by --kubeconfig or $KUBECONFIG, if this is not a Pod): %w", err)
	}
	return Serve(ctx, config, p, options)
}
