// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RegistryConfigSpec holds rules about how registries and other HTTP servers are reached.
type RegistryConfigSpec struct {
	// rules are told apart by their prefixes. Of all rules in the cluster, that
	// with the longest prefix counts for a reference, and no other.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=prefix
	Rules []RegistryRule `json:"rules"`
}

// RegistryRule says how everything under one prefix is reached.
// +kubebuilder:validation:XValidation:rule="!(has(self.blocked) && self.blocked) || !(has(self.mirrors) || has(self.rewrite) || has(self.mirrorOnly) || has(self.credentials) || has(self.proxy) || has(self.ca) || has(self.clientCertificate))",message="a blocked rule has nothing but its prefix: nothing is asked for under it"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirrorOnly) && self.mirrorOnly) || has(self.mirrors)",message="mirrorOnly needs mirrors"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirrorOnly) && self.mirrorOnly && has(self.rewrite))",message="mirrorOnly and rewrite exclude one another: rewrite says where the primary is, which is never asked"
// +kubebuilder:validation:XValidation:rule="self.prefix != '*' || !has(self.credentials)",message="a rule about every server cannot have credentials: they would go to anybody"
// +kubebuilder:validation:XValidation:rule="!(has(self.insecure) && self.insecure && has(self.clientCertificate) && !(has(self.skipVerify) && self.skipVerify))",message="insecure speaks plain HTTP, which has no client certificates"
type RegistryRule struct {
	// prefix is what the rule is about: "host[:port]" or "host[:port]/path", whole
	// path elements at a time; "*.domain" for all hosts below a domain, at any
	// depth and port; or "*" for every host. Docker's registry is "docker.io",
	// and its official images are "docker.io/library/...".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(\*|\*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*|\[[0-9a-f:]+\])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(/[A-Za-z0-9_][A-Za-z0-9._~-]*)*)$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(index|registry-1)[.]docker[.]io(/|$)')",message="Docker's registry is written docker.io"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('*') || self.split('/')[0].matches('[.:]|^localhost$')",message="prefix must begin with a host that has a dot or a port, or be localhost"
	Prefix string `json:"prefix"`

	// blocked refuses everything under the prefix.
	// +optional
	Blocked bool `json:"blocked,omitempty"`

	// rewrite takes the place of the prefix when the primary is reached:
	// "host[:port]" or "host[:port]/path". The name of the content stays that of
	// the user. The access fields of this rule are then about that place.
	// +optional
	Rewrite RegistryLocation `json:"rewrite,omitempty"`

	// mirrors are asked in this order before the primary; the first that has
	// what is asked for gives it. They serve OCI registries alone.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(m, self.exists_one(n, n.location == m.location))",message="each mirror is named once"
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`

	// mirrorOnly never asks the primary.
	// +optional
	MirrorOnly bool `json:"mirrorOnly,omitempty"`

	RegistryAccess `json:",inline"`
}

// RegistryLocation is "host[:port]" or "host[:port]/path".
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*|\[[0-9a-f:]+\])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(/[A-Za-z0-9_][A-Za-z0-9._~-]*)*$`
// +kubebuilder:validation:XValidation:rule="self.split('/')[0].matches('[.:]|^localhost$')",message="must begin with a host that has a dot or a port, or be localhost"
type RegistryLocation string

// RegistryScope is a set of references.
// +kubebuilder:validation:Enum=All;Digest;Tag
type RegistryScope string

const (
	// RegistryScopeAll is every reference.
	RegistryScopeAll RegistryScope = "All"
	// RegistryScopeDigest is references by digest.
	RegistryScopeDigest RegistryScope = "Digest"
	// RegistryScopeTag is references by tag.
	RegistryScopeTag RegistryScope = "Tag"
)

// RegistryMirror is a registry that may have what the primary has. What it does
// not say about its access comes from the rule whose prefix is about its own
// address, if there is one; never from the rule that it stands in.
// +kubebuilder:validation:XValidation:rule="!(has(self.insecure) && self.insecure && has(self.clientCertificate) && !(has(self.skipVerify) && self.skipVerify))",message="insecure speaks plain HTTP, which has no client certificates"
type RegistryMirror struct {
	// location takes the place of the rule's prefix: with the prefix
	// "docker.io" and the location "mirror.example.com/hub",
	// docker.io/library/nginx is mirror.example.com/hub/library/nginx.
	// +kubebuilder:validation:MinLength=1
	Location RegistryLocation `json:"location"`

	// apiPath is the path of the registry API, where it is not "/v2".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[A-Za-z0-9._~-]+)+$`
	APIPath string `json:"apiPath,omitempty"`

	// pull says which references the mirror is asked for: All (the default),
	// only those by Digest, or only those by Tag.
	// +optional
	// +kubebuilder:default=All
	Pull RegistryScope `json:"pull,omitempty"`

	RegistryAccess `json:",inline"`
}

// RegistryAccess says how a server is spoken to. Every Secret and ConfigMap
// that is named stands in the namespace of RukPak's manager, rukpak-system.
type RegistryAccess struct {
	// insecure speaks plain HTTP instead of HTTPS. Together with skipVerify,
	// HTTPS is tried first.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// skipVerify takes any certificate. Prefer ca.
	// +optional
	SkipVerify bool `json:"skipVerify,omitempty"`

	// ca holds certificates that are trusted besides those of the system.
	// +optional
	CA *RegistryCA `json:"ca,omitempty"`

	// clientCertificate is shown to the server: a Secret of type
	// kubernetes.io/tls.
	// +optional
	ClientCertificate *LocalReference `json:"clientCertificate,omitempty"`

	// credentials name a Secret of type kubernetes.io/dockerconfigjson,
	// kubernetes.io/dockercfg or kubernetes.io/basic-auth. They are tried after
	// the pull secrets of a bundle, and go to this server alone. Whoever may
	// create a Bundle can fetch with them.
	// +optional
	Credentials *LocalReference `json:"credentials,omitempty"`

	// proxy is gone through. Not set means that of the manager's environment.
	// +optional
	Proxy *RegistryProxy `json:"proxy,omitempty"`

	// dialTimeout ends an attempt to connect. Not set means 10s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('5m')",message="dialTimeout must be more than 0s and at most 5m"
	DialTimeout *metav1.Duration `json:"dialTimeout,omitempty"`

	// retry says how often, and when, a request that failed is sent again.
	// +optional
	Retry *RegistryRetry `json:"retry,omitempty"`

	// rateLimit bounds how many requests this manager sends.
	// +optional
	RateLimit *RegistryRateLimit `json:"rateLimit,omitempty"`
}

// RegistryCA is certificates in PEM. Exactly one place of them is set.
// +kubebuilder:validation:XValidation:rule="[has(self.pem), has(self.configMap), has(self.secret)].filter(set, set).size() == 1",message="exactly one of pem, configMap and secret must be set"
type RegistryCA struct {
	// pem is the certificates themselves.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:Pattern=`-----BEGIN CERTIFICATE-----`
	PEM string `json:"pem,omitempty"`

	// configMap is a key of a ConfigMap.
	// +optional
	ConfigMap *CertificateKey `json:"configMap,omitempty"`

	// secret is a key of a Secret.
	// +optional
	Secret *CertificateKey `json:"secret,omitempty"`
}

// CertificateKey names a key of a ConfigMap or Secret.
type CertificateKey struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in its data. Not set means "ca.crt".
	// +optional
	// +kubebuilder:default=ca.crt
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// RegistryProxy is a proxy to go through.
type RegistryProxy struct {
	// url of the proxy, without credentials: http://, https:// or socks5://.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(http|https|socks5)://[^/@?#[:space:]]+/?$`
	URL string `json:"url"`

	// noProxy are servers that are reached directly: hosts (with all below
	// them), ".domain" for those below alone, addresses, CIDRs, each with or
	// without a port, or "*".
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^,[:space:]]+$`
	// +listType=set
	NoProxy []string `json:"noProxy,omitempty"`

	// credentials for the proxy: a Secret of type kubernetes.io/basic-auth.
	// +optional
	Credentials *LocalReference `json:"credentials,omitempty"`
}

// RegistryRetry says how often, and when, a request that failed is sent again:
// one that reads, and that met a broken connection or the status 429, 502, 503
// or 504. A server that says when to come back is heard, up to maxDelay.
// +kubebuilder:validation:XValidation:rule="!has(self.delay) || !has(self.maxDelay) || duration(self.delay) <= duration(self.maxDelay)",message="delay must be at most maxDelay"
type RegistryRetry struct {
	// attempts that are made altogether; 1 means no retry.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Attempts int32 `json:"attempts"`

	// delay before the second attempt; it is doubled each time. Not set means
	// 500ms.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="delay must be at least 1ms and at most 10m"
	Delay *metav1.Duration `json:"delay,omitempty"`

	// maxDelay is the longest delay. Not set means 30s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="maxDelay must be at least 1ms and at most 10m"
	MaxDelay *metav1.Duration `json:"maxDelay,omitempty"`
}

// RegistryRateLimit bounds requests.
type RegistryRateLimit struct {
	// requestsPerSecond that are sent on average.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	RequestsPerSecond int32 `json:"requestsPerSecond"`

	// burst is how many may be sent at once. Not set means as many as in one
	// second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Burst int32 `json:"burst,omitempty"`
}

// RegistryConfigStatus says whether the rules are in force.
type RegistryConfigStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// rules is how many rules of this object are in force.
	// +optional
	Rules int32 `json:"rules,omitempty"`

	// conditions: Ready is True when every rule is in force.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RegistryConfig says how registries and other HTTP servers are reached, for
// all that fetch: mirrors, rewrites, authorities, certificates, proxies,
// credentials, limits. Rules of several objects work together; of two with the
// same prefix, that of the older object is in force, and both objects say so.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rcfg,categories=rukpak
// +kubebuilder:printcolumn:name="Rules",type=integer,JSONPath=`.status.rules`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RegistryConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the rules.
	Spec RegistryConfigSpec `json:"spec"`
	// status says whether they are in force.
	// +optional
	Status RegistryConfigStatus `json:"status,omitzero"`
}

// RegistryConfigList is a list of RegistryConfig objects.
// +kubebuilder:object:root=true
type RegistryConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RegistryConfig `json:"items"`
}
