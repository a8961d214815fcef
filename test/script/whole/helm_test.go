// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"context"

	"github.com/rogpeppe/go-internal/testscript"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"
)

// helmInstall is "helminstall NAME CHART VALUES": Helm's own library installs a chart.
func helmInstall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: helminstall NAME CHART VALUES")
	}
	config, namespace := ts.Getenv("KUBECONFIG"), ts.Getenv("NS")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &config, &namespace
	helm := action.NewConfiguration()
	ts.Check(helm.Init(flags, namespace, "secrets"))
	chart, err := loader.Load(ts.MkAbs(args[1]))
	ts.Check(err)
	values := map[string]any{}
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[2])), &values))
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.WaitStrategy = args[0], namespace, kube.HookOnlyStrategy
	_, err = install.RunWithContext(context.Background(), chart, values)
	ts.Check(err)
}
