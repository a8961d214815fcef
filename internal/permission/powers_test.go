// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/provisioner"
)

// objectsOf reads a list of objects. RBAC stands for its apiVersion, and NS:NAME, or NAME alone, for the metadata.
func objectsOf(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	text = strings.ReplaceAll(text, "apiVersion: RBAC", "apiVersion: rbac.authorization.k8s.io/v1")
	var all []map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, fields := range all {
		if name, short := fields["metadata"].(string); short {
			metadata := map[string]any{"name": name}
			if namespace, name, both := strings.Cut(name, ":"); both {
				metadata = map[string]any{"namespace": namespace, "name": name}
			}
			fields["metadata"] = metadata
		}
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return objects
}

// bound is a cluster with some strong roles and bindings.
func bound() *Snapshot {
	secrets := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	ref := func(name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: "ClusterRole", Name: name} }
	return NewSnapshot(Live{
		ClusterRoles: []*rbacv1.ClusterRole{
			{ObjectMeta: named("cluster-admin"), Rules: everything()},
			{ObjectMeta: named("reader"), Rules: secrets},
			{ObjectMeta: named("view"), AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to-view": "true"}}}}},
			{ObjectMeta: named("discovery"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/api/*"}}}},
		},
		ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{
			{ObjectMeta: named("robot"), RoleRef: ref("cluster-admin"), Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "sys", Name: "robot"}}},
			{ObjectMeta: named("sys"), RoleRef: ref("reader"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:sys"}}},
			{ObjectMeta: named("viewers"), RoleRef: ref("view"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: "staff"}}},
			{ObjectMeta: named("discovery"), RoleRef: ref("discovery"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: Authenticated}}},
		},
	})
}

// told are powers as lines.
func told(p *Powers) []string {
	var lines []string
	in := func(namespace string) string {
		if namespace == "" {
			return ""
		}
		return " in " + namespace
	}
	for _, g := range p.Grants {
		for _, rule := range g.Rules {
			lines = append(lines, g.Subject.String()+in(g.Namespace)+": "+Line(rule))
		}
	}
	for _, g := range p.MayGain {
		who := "content"
		if g.Subject != nil {
			who = g.Subject.String()
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s%s may gain: %s %s", who, in(g.Namespace), g.Way, g.Value)))
	}
	for _, a := range p.Accounts {
		if !a.Owned {
			lines = append(lines, fmt.Sprintf("foreign account %s/%s by %s", a.Namespace, a.Name, strings.Join(a.Tokens, ",")))
		}
	}
	for _, one := range p.Pods {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("pods%s: %s %s", in(one.Namespace), one.What, one.Value)))
	}
	for _, i := range p.Intercepts {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s.%s %s %s -> %s", i.By, i.Operation, i.Resource, i.Group, i.Scope, i.Only, i.Target)), " "))
	}
	for _, o := range p.Owns {
		lines = append(lines, strings.TrimSpace("owns "+o.Kind+" "+o.Name))
	}
	for _, r := range p.Registries {
		lines = append(lines, "images from "+r.Name)
	}
	return lines
}

const restricted = `securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, image: example.com/a:1, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`

func TestWaysToRightsAreSeen(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"nothing": {`[]`, ``},
		"an account of its own, bound to a role of its own": {`
- {apiVersion: v1, kind: ServiceAccount, metadata: "a:app"}
- {apiVersion: RBAC, kind: Role, metadata: "a:r", rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- {apiVersion: RBAC, kind: RoleBinding, metadata: "a:b", roleRef: {kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: app, namespace: a}]}`,
			`ServiceAccount a/app in a: get pods`},
		"what everybody may do is not told": {`
- {apiVersion: v1, kind: ServiceAccount, metadata: "a:app"}
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: b, roleRef: {kind: ClusterRole, name: discovery}, subjects: [{kind: ServiceAccount, name: app, namespace: a}]}`,
			``},
		"a role that exists": {`
- {apiVersion: RBAC, kind: RoleBinding, metadata: "a:b", roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: User, name: "system:serviceaccount:a:app"}]}`,
			"ServiceAccount a/app in a: get secrets\nServiceAccount a/app in a may gain: ReadSecrets"},
		"a role that does not exist yet": {`
- {apiVersion: RBAC, kind: RoleBinding, metadata: "a:b", roleRef: {kind: ClusterRole, name: later}, subjects: [{kind: User, name: jane}]}`,
			`content in a may gain: MissingRole ClusterRole.rbac.authorization.k8s.io later`},
		"a namespace whose accounts may do much": {`
- {apiVersion: v1, kind: ServiceAccount, metadata: "sys:app"}`,
			"ServiceAccount sys/app: get secrets\nServiceAccount sys/app may gain: ReadSecrets"},
		"a label that widens a role that exists": {`
- {apiVersion: RBAC, kind: ClusterRole, metadata: {name: r, labels: {to-view: "true"}}, rules: [{apiGroups: [x.io], resources: [ys], verbs: [get]}]}`,
			`Group staff: get ys of x.io`},
		"an aggregated role of its own": {`
- {apiVersion: RBAC, kind: ClusterRole, metadata: r, aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: "y"}}]}}`,
			`content may gain: AggregatedRole r`},
		"a group of all": {`
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: b, roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [{kind: Group, name: "system:unauthenticated"}]}`,
			"Group system:unauthenticated: * * of *\nGroup system:unauthenticated: * *"},
		"a Pod that runs as an account of others": {`
- {apiVersion: v1, kind: Pod, metadata: "sys:p", spec: {serviceAccountName: robot, ` + restricted + `}}`,
			"ServiceAccount sys/robot: * * of *\nServiceAccount sys/robot: * *\nforeign account sys/robot by Pod sys/p\npods in sys: PodSecurityLevel restricted\nimages from example.com"},
		"one that does so without a token": {`
- {apiVersion: v1, kind: Pod, metadata: "sys:p", spec: {serviceAccountName: robot, automountServiceAccountToken: false, ` + restricted + `}}`,
			"pods in sys: PodSecurityLevel restricted\nimages from example.com"},
		"one that asks for a token by a volume": {`
- {apiVersion: v1, kind: Pod, metadata: "sys:p", spec: {serviceAccountName: robot, automountServiceAccountToken: false, volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}], ` + restricted + `}}`,
			"ServiceAccount sys/robot: * * of *\nServiceAccount sys/robot: * *\nforeign account sys/robot by Pod sys/p\npods in sys: PodSecurityLevel restricted\nimages from example.com"},
		"one that asks for a certificate of its account": {`
- {apiVersion: v1, kind: Pod, metadata: "sys:p", spec: {serviceAccountName: robot, automountServiceAccountToken: false, volumes: [{name: t, projected: {sources: [{podCertificate: {signerName: x.io/y, keyType: ED25519}}]}}], ` + restricted + `}}`,
			"ServiceAccount sys/robot: * * of *\nServiceAccount sys/robot: * *\nforeign account sys/robot by Pod sys/p\npods in sys: PodSecurityLevel restricted\nimages from example.com"},
		"rights on the gate itself": {`
- {apiVersion: RBAC, kind: ClusterRole, metadata: r, rules: [
    {apiGroups: [rukpak.io], resources: [provisionerclasses], verbs: [patch]},
    {apiGroups: [rukpak.io], resources: [instancerevisions], verbs: [manage]}]}
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: b, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: u}, {kind: User, name: v}]}
- {apiVersion: RBAC, kind: RoleBinding, metadata: "a:b", roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: w}]}`,
			`User u: manage instancerevisions of rukpak.io
User u: patch provisionerclasses of rukpak.io
User v: manage instancerevisions of rukpak.io
User v: patch provisionerclasses of rukpak.io
User w in a: manage instancerevisions of rukpak.io
User w in a: patch provisionerclasses of rukpak.io
User u may gain: ApproveContent
User v may gain: ApproveContent`},
		"a Secret that asks for a token": {`
- {apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: sys, name: s, annotations: {kubernetes.io/service-account.name: robot}}}`,
			"ServiceAccount sys/robot: * * of *\nServiceAccount sys/robot: * *\nforeign account sys/robot by Secret sys/s"},
		"a Pod with a Secret of others": {`
- {apiVersion: v1, kind: Pod, metadata: "a:p", spec: {automountServiceAccountToken: false, volumes: [{name: t, secret: {secretName: key}}], ` + restricted + `}}`,
			"content in a may gain: ForeignSecret key\npods in a: PodSecurityLevel restricted\nimages from example.com"},
		"a Pod with volumes that are mounted by Secrets of others": {`
- {apiVersion: v1, kind: Pod, metadata: "a:p", spec: {automountServiceAccountToken: false, volumes: [
    {name: t, csi: {driver: x.io, nodePublishSecretRef: {name: key}}}, {name: u, csi: {driver: x.io}}, {name: v, azureFile: {secretName: share, shareName: s}}], ` + restricted + `}}`,
			"content in a may gain: ForeignSecret key\ncontent in a may gain: ForeignSecret share\npods in a: PodSecurityLevel baseline\npods in a: Violates restricted volume types\nimages from example.com"},
		"rights to more": {`
- {apiVersion: RBAC, kind: ClusterRole, metadata: r, rules: [
    {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind], resourceNames: [reader]},
    {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]},
    {apiGroups: [""], resources: [groups], verbs: [impersonate], resourceNames: ["system:masters"]},
    {apiGroups: [apps], resources: ["*"], verbs: [create]},
    {apiGroups: [""], resources: ["*/token"], verbs: [create]},
    {apiGroups: [certificates.k8s.io], resources: [signers], verbs: [approve]},
    {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [update]},
    {apiGroups: [""], resources: [nodes/proxy], verbs: [get]}]}
- {apiVersion: RBAC, kind: ClusterRoleBinding, metadata: b, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: u}]}`,
			`User u: create */token
User u: get nodes/proxy
User u: update mutatingwebhookconfigurations of admissionregistration.k8s.io
User u: create * of apps
User u: approve signers of certificates.k8s.io
User u: escalate clusterroles of rbac.authorization.k8s.io
User u: impersonate groups ["system:masters"]
User u: bind clusterroles of rbac.authorization.k8s.io ["reader"]
User u may gain: Bind clusterroles reader
User u may gain: Escalate
User u may gain: Impersonate groups system:masters
User u may gain: Nodes
User u may gain: RunAsAccount
User u may gain: SignCertificates
User u may gain: Tokens
User u may gain: WriteAdmission`},
		"Pods beside a strong account": {`
- {apiVersion: RBAC, kind: Role, metadata: "sys:r", rules: [{apiGroups: [""], resources: [pods], verbs: [create]}]}
- {apiVersion: RBAC, kind: RoleBinding, metadata: "sys:b", roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}]}`,
			"User u in sys: create pods\nUser u in sys may gain: RunAsAccount serviceaccounts robot"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Of(objectsOf(t, tc.content), bound())
			if err != nil {
				t.Fatal(err)
			}
			want, got := strings.Split(tc.want, "\n"), told(p)
			if tc.want == "" {
				want = nil
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherPowersAreSeen(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"a Pod with power over its node": {`
- {apiVersion: apps/v1, kind: DaemonSet, metadata: "a:d", spec: {template: {spec: {
    automountServiceAccountToken: false, hostNetwork: true, hostPID: true,
    volumes: [{name: v, hostPath: {path: /var/log}}, {name: w, hostPath: {path: /etc}}],
    containers: [{name: c, image: "busybox", volumeMounts: [{name: v, mountPath: /a, readOnly: true}, {name: w, mountPath: /b}],
      securityContext: {privileged: true, capabilities: {add: [CAP_SYS_ADMIN, net_raw]}}}]}}}}`,
			`pods in a: Capability NET_RAW
pods in a: Capability SYS_ADMIN
pods in a: HostNamespace Network
pods in a: HostNamespace PID
pods in a: HostPath /etc
pods in a: HostPathReadOnly /var/log
pods in a: PodSecurityLevel privileged
pods in a: Privileged
pods in a: Violates allowPrivilegeEscalation != false
pods in a: Violates host namespaces
pods in a: Violates non-default capabilities
pods in a: Violates hostPath volumes
pods in a: Violates privileged
pods in a: Violates restricted volume types
pods in a: Violates runAsNonRoot != true
pods in a: Violates seccompProfile
pods in a: Violates unrestricted capabilities
images from index.docker.io`},
		"a Pod that cannot be read": {`
- {apiVersion: v1, kind: Pod, metadata: "a:p", spec: {containers: [{name: 1}]}}`,
			`content in a may gain: Unknown Pods of Pod a/p, which cannot be read
pods in a: PodSecurityLevel privileged
pods in a: Violates it cannot be read`},
		"webhooks": {`
- {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: m, webhooks: [{name: x, clientConfig: {service: {namespace: a, name: s}},
    rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: [secrets, "*/*"], scope: Namespaced}]}]}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: v, webhooks: [{name: x, clientConfig: {url: "https://evil.example"},
    objectSelector: {matchLabels: {a: b}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods], scope: "*"}]}]}`,
			`MutatingWebhook CREATE secrets.* Namespaced -> a/s
MutatingWebhook CREATE */*.* Namespaced -> a/s
ValidatingWebhook * pods. {"objectSelector":{"matchLabels":{"a":"b"}}} -> https://evil.example`},
		"what serves and converts": {`
- {apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: v1.x.io, spec: {group: x.io, version: v1, service: {namespace: a, name: s}}}
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: ys.x.io, spec: {group: x.io, names: {plural: ys, kind: Thing},
    conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: a, name: s}}}}}}
- {apiVersion: x.io/v1, kind: Thing, metadata: "a:y"}
- {apiVersion: z.io/v1, kind: Z, metadata: "a:z"}
- {apiVersion: v1, kind: Namespace, metadata: "ns"}
- {apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: d, spec: {tokenRequests: [{audience: a}]}}`,
			`content in a may gain: CustomResource Z.z.io
content may gain: TokensOfVolumeUser d
APIService * */*.x.io v1 -> a/s
Conversion * ys.x.io -> a/s
owns APIService
owns CSIDriver
owns CustomResourceDefinition ys.x.io
owns Namespace ns`},
		"volumes that are paths of nodes, addresses, and levels of namespaces": {`
- {apiVersion: v1, kind: PersistentVolume, metadata: v, spec: {hostPath: {path: /etc}}}
- {apiVersion: v1, kind: PersistentVolume, metadata: w, spec: {local: {path: /var/lib}, claimRef: {namespace: a, name: c}}}
- {apiVersion: v1, kind: PersistentVolume, metadata: x, spec: {nfs: {path: /srv, server: s}}}
- {apiVersion: v1, kind: Service, metadata: "a:s", spec: {externalIPs: [10.0.0.1]}}
- {apiVersion: v1, kind: Endpoints, metadata: "a:e", subsets: [{addresses: [{ip: 10.0.0.2}], notReadyAddresses: [{ip: 10.0.0.3}]}]}
- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: "a:f", addressType: IPv4, endpoints: [{addresses: [10.0.0.4]}]}
- {apiVersion: v1, kind: Namespace, metadata: {name: lax, labels: {pod-security.kubernetes.io/enforce: privileged}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}}`,
			`pods: HostPath /etc
pods in a: HostPath /var/lib
content in a may gain: DivertTraffic 10.0.0.1
content in a may gain: DivertTraffic 10.0.0.2
content in a may gain: DivertTraffic 10.0.0.3
content in a may gain: DivertTraffic 10.0.0.4
content in lax may gain: LiftPodSecurity level privileged
owns Namespace lax
owns Namespace strict
owns PersistentVolume`},
		"kinds that only have the names of others": {`
- {apiVersion: x.io/v1, kind: MutatingAdmissionPolicy, metadata: of-others}
- {apiVersion: x.io/v1, kind: CustomResourceDefinition, metadata: ys.x.io, spec: {group: x.io, names: {plural: ys, kind: Thing}}}
- {apiVersion: x.io/v1, kind: Thing, metadata: "a:y"}
- {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: m, spec: {policyName: of-others}}`,
			`MutatingPolicy * */*.* -> policy of-others
content in a may gain: CustomResource Thing.x.io
content may gain: CustomResource CustomResourceDefinition.x.io
content may gain: CustomResource MutatingAdmissionPolicy.x.io
owns CustomResourceDefinition
owns MutatingAdmissionPolicy`},
		"policies": {`
- {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: m, spec: {matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]}}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: m, spec: {policyName: m}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: v, spec: {policyName: of-others}}`,
			`MutatingPolicy UPDATE deployments.apps ->
ValidatingPolicy * */*.* -> policy of-others`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Of(objectsOf(t, tc.content), bound())
			if err != nil {
				t.Fatal(err)
			}
			want, got := strings.Split(tc.want, "\n"), told(p)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnObjectThatCannotBeReadIsNamed(t *testing.T) {
	_, err := Of(objectsOf(t, `[{apiVersion: RBAC, kind: Role, metadata: "a:r", rules: [{verbs: get}]}]`), bound())
	if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "a/r") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWhatIsMoreIsGained(t *testing.T) {
	hosts := func(path, more string) string {
		return `- {apiVersion: v1, kind: Pod, metadata: "a:` + more + `", spec: {automountServiceAccountToken: false, containers: [{name: c, image: x/y, volumeMounts: [{name: v}]}], volumes: [{name: v, hostPath: {path: ` + path + `}}]}}`
	}
	hook := func(kind, resource, only string) string {
		return `- {apiVersion: admissionregistration.k8s.io/v1, kind: ` + kind + `, metadata: m, webhooks: [{name: x, clientConfig: {service: {namespace: a, name: s}}, ` + only +
			`rules: [{apiGroups: [""], operations: [CREATE], resources: ["` + resource + `"]}]}]}`
	}
	volume := func(source, name string) string {
		return `- {apiVersion: v1, kind: PersistentVolume, metadata: "` + name + `", spec: {` + source + `}}`
	}
	const mutating, validating = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
	tests := map[string]struct {
		old, new string
		gained   int
	}{
		"the same by another name":        {hosts("/var", "x"), hosts("/var", "y"), 0},
		"a path below":                    {hosts("/var", "x"), hosts("/var/log", "x"), 0},
		"a path above":                    {hosts("/var/log", "x"), hosts("/var", "x"), 1},
		"a path beside":                   {hosts("/var", "x"), hosts("/variety", "x"), 1},
		"a path that leads out":           {hosts("/var", "x"), hosts("/var/../etc", "x"), 1},
		"from mutating to validating":     {hook(mutating, "pods", ""), hook(validating, "pods", ""), 0},
		"from validating to mutating":     {hook(validating, "pods", ""), hook(mutating, "pods", ""), 1},
		"from all to one":                 {hook(mutating, "*/*", ""), hook(mutating, "pods/exec", ""), 0},
		"from one to all":                 {hook(mutating, "pods", ""), hook(mutating, "*", ""), 1},
		"from all to those with a label":  {hook(mutating, "pods", ""), hook(mutating, "pods", "objectSelector: {matchLabels: {a: b}}, "), 0},
		"from those with a label to all":  {hook(mutating, "pods", "objectSelector: {matchLabels: {a: b}}, "), hook(mutating, "pods", ""), 1},
		"a second volume, of the node":    {volume("nfs: {server: s, path: /a}", "v"), volume("nfs: {server: s, path: /a}", "v") + "\n" + volume("hostPath: {path: /}", "w"), 1},
		"a volume below":                  {volume("hostPath: {path: /var}", "v"), volume("local: {path: /var/log}", "v"), 0},
		"all subresources are not of all": {hook(mutating, "*", ""), hook(mutating, "pods/*", ""), 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, e, err := Between(objectsOf(t, tc.old), objectsOf(t, tc.new), bound())
			if err != nil {
				t.Fatal(err)
			}
			if got := told(&e.Gained); len(got) != tc.gained {
				t.Errorf("gained %q, want %d", got, tc.gained)
			}
		})
	}
}

func TestARuleTooLargeToCompareIsEverything(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprint("x", i))
	}
	role := loose(t, &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{
		{Verbs: many, APIGroups: many, Resources: many, ResourceNames: many},
	}})
	binding := objectsOf(t, `[{apiVersion: RBAC, kind: ClusterRoleBinding, metadata: b, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: u}]}]`)
	p, err := Of(append(binding, role), bound())
	if err != nil {
		t.Fatal(err)
	}
	got := told(p)
	if got[0] != "User u: * * of *" || !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "20000 combinations") }) {
		t.Errorf("got %q", got)
	}
}
