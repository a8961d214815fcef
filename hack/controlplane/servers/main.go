// SPDX-License-Identifier: Apache-2.0

// Command servers is a Kubernetes control plane in one file: kube-apiserver, kube-controller-manager,
// kube-scheduler, etcd and kubectl, chosen by the name it is called by. One binary instead of five, because
// they share most of their packages: it compiles and links once, and takes 150 MB of disk instead of 500.
// It exists for `make demo` and the tests, on machines that have no cluster; nothing of RukPak imports it.
//
// The main module finds it by the names of links that lead to it (internal/testenv/assets).
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		run(controllermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kubectl":
		run(kubectl.NewDefaultKubectlCommand())
	default:
		_, _ = os.Stderr.WriteString("called as \"" + name + "\", which is no server of this binary: " +
			"call it by a link named etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kubectl\n")
		os.Exit(2)
	}
}

func run(command *cobra.Command) { os.Exit(cli.Run(command)) }
