// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"path/filepath"

	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/process"
)

// frontProxyUser is whom the API server is for the API servers behind it.
const frontProxyUser = "front-proxy"

// spec says how a program of the environment is started.
func (e *Env) spec(name string, args ...string) process.Spec {
	return process.Spec{
		Name: name,
		Path: e.paths[name],
		Args: args,
		Dir:  e.dir.Path,
		Env:  []string{"HOME=" + e.dir.Path}, // none of these may find a user's own configuration
	}
}

// etcdSpec trades durability for speed: the data lives no longer than the environment, and survives a restart of
// the API server, which is all that is promised.
func (e *Env) etcdSpec() process.Spec {
	client, peer := "http://"+e.etcdPort.Address(), "http://"+e.peerPort.Address()
	return e.spec(assets.Etcd,
		"--data-dir="+e.path("etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer,
		"--quota-backend-bytes=8589934592",
		"--auto-compaction-retention=0",
		"--log-level=warn",
	)
}

// apiServerSpec leaves admission as it is by default, since what RukPak does has to work with it. Without
// controllers there is one exception: nobody makes the service accounts that every Pod would need.
func (e *Env) apiServerSpec() process.Spec {
	pki := func(name string) string { return e.path("pki", name) }
	args := []string{
		"--etcd-servers=http://" + e.etcdPort.Address(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", e.apiPort.Number),
		"--endpoint-reconciler-type=none", // it refuses a loopback address, again and again
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
		"--cert-dir=" + e.path("pki"),
		"--client-ca-file=" + pki("ca.crt"),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/12",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki("service-accounts.crt"),
		"--service-account-signing-key-file=" + pki("service-accounts.key"),
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-proxy.crt"), "--proxy-client-key-file=" + pki("front-proxy.key"),
	}
	if !e.options.Controllers {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return e.spec(assets.APIServer, append(args, e.options.APIServerArgs...)...)
}

// controllerSpec turns off the controller that calls nodes dead: on a busy machine it would be wrong too often.
func (e *Env) controllerSpec() process.Spec {
	return e.spec(assets.ControllerManager,
		"--kubeconfig="+e.path(controllerConfig),
		"--authentication-kubeconfig="+e.path(controllerConfig),
		"--authorization-kubeconfig="+e.path(controllerConfig),
		"--controllers=*,-node-lifecycle-controller",
		"--service-account-private-key-file="+e.path("pki", "service-accounts.key"),
		"--root-ca-file="+e.path("pki", "ca.crt"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=false",
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
}

func (e *Env) schedulerSpec() process.Spec {
	return e.spec(assets.Scheduler,
		"--kubeconfig="+e.path(schedulerConfig),
		"--authentication-kubeconfig="+e.path(schedulerConfig),
		"--authorization-kubeconfig="+e.path(schedulerConfig),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
}

func (e *Env) kwokSpec() process.Spec {
	spec := e.spec(assets.Kwok,
		"--kubeconfig="+e.path(kwokConfig),
		"--config="+e.path(stagesFile),
		"--manage-all-nodes=true",
		"--cidr=10.64.0.0/10",
		"--node-ip=10.63.0.1",
		"--node-port=0",
		"--node-lease-duration-seconds=0", // nobody looks at the leases, and a quiet cluster is to be quiet
	)
	spec.Env = append(spec.Env, "KWOK_WORKDIR="+filepath.Join(e.dir.Path, "kwok"))
	return spec
}
