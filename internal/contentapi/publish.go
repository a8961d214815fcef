// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

// APIServiceName is the object by which the API server knows of the content API.
var APIServiceName = contentv1.GroupVersion.Version + "." + contentv1.GroupVersion.Group

var apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// How often it is looked at what was told, and how long the API server gets to
// take a new authority over before it is used.
const (
	lookInterval  = time.Minute
	retryInterval = 2 * time.Second
	takeOverTime  = 30 * time.Second
)

// publisher tells the API server where this server is and whom to trust: the
// caBundle of the APIService, and the EndpointSlice of its Service.
type publisher struct {
	client    client.Client
	keys      *keyring
	advertise string
	port      int32
	artifacts int32 // port of archives for Flux, 0 for none
	log       logr.Logger
	missing   bool // has been said
}

// prepare tells it once.
func (p *publisher) prepare(ctx context.Context) error {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(apiServiceKind)
	if err := p.client.Get(ctx, types.NamespacedName{Name: APIServiceName}, found); err != nil {
		return err
	}
	namespace, _, _ := unstructured.NestedString(found.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(found.Object, "spec", "service", "name")
	if namespace == "" || name == "" {
		return fmt.Errorf("APIService %s names no Service in spec.service", APIServiceName)
	}
	p.keys.setNames(name+"."+namespace+".svc", name+"."+namespace, "localhost")
	return errors.Join(p.trust(ctx, found), p.endpoint(ctx, namespace, name))
}

// run keeps it told until ctx ends.
func (p *publisher) run(ctx context.Context) {
	pause := retryInterval // the first look may have failed
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := p.prepare(ctx)
		pause = lookInterval
		switch {
		case ctx.Err() != nil:
			return
		case apierrors.IsNotFound(err) && !p.missing:
			p.missing = true
			p.log.Info("the content API is not installed: there is no APIService " + APIServiceName + "; apply config/contentapi")
		case err != nil && !apierrors.IsNotFound(err):
			p.log.Error(err, "the content API cannot be announced; tried again")
			pause = retryInterval
		case err == nil:
			p.missing = false
			p.promote(ctx)
		}
	}
}

// trust puts the authorities into the APIService.
func (p *publisher) trust(ctx context.Context, found *unstructured.Unstructured) error {
	bundle, err := p.keys.bundle()
	if err != nil {
		return err
	}
	text, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle")
	present, _ := base64.StdEncoding.DecodeString(text)
	insecure, _, _ := unstructured.NestedBool(found.Object, "spec", "insecureSkipTLSVerify")
	if bytes.Equal(present, bundle) && !insecure {
		return nil
	}
	before := found.DeepCopy()
	if err := unstructured.SetNestedField(found.Object, base64.StdEncoding.EncodeToString(bundle), "spec", "caBundle"); err != nil {
		return err
	}
	unstructured.RemoveNestedField(found.Object, "spec", "insecureSkipTLSVerify")
	return p.client.Patch(ctx, found, client.MergeFrom(before))
}

// promote lets a new authority take over once the API server has had the time
// to learn of it.
func (p *publisher) promote(ctx context.Context) {
	bundle, err := p.keys.bundle()
	if err != nil || !p.keys.turning() {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(takeOverTime):
		p.keys.told(bundle)
	}
}

// endpoint leads the Service to this manager: it has no selector, because only
// the one that leads serves.
func (p *publisher) endpoint(ctx context.Context, namespace, service string) error {
	if p.advertise == "" {
		return nil
	}
	wanted := endpointSlice(namespace, service, p.advertise, p.port, p.artifacts)
	present := &discoveryv1.EndpointSlice{}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if apierrors.IsNotFound(err) {
		return p.client.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	if present.AddressType != wanted.AddressType { // it cannot be changed
		if err := p.client.Delete(ctx, present); client.IgnoreNotFound(err) != nil {
			return err
		}
		return p.client.Create(ctx, wanted)
	}
	if equality.Semantic.DeepEqual(present.Endpoints, wanted.Endpoints) && equality.Semantic.DeepEqual(present.Ports, wanted.Ports) {
		return nil
	}
	present.Endpoints, present.Ports = wanted.Endpoints, wanted.Ports
	return p.client.Update(ctx, present)
}

func endpointSlice(namespace, service, address string, port, artifacts int32) *discoveryv1.EndpointSlice {
	kind := discoveryv1.AddressTypeIPv4
	if strings.Contains(address, ":") {
		kind = discoveryv1.AddressTypeIPv6
	}
	ports := []discoveryv1.EndpointPort{{Name: new("https"), Port: new(port), Protocol: new(corev1.ProtocolTCP)}}
	if artifacts != 0 {
		ports = append(ports, discoveryv1.EndpointPort{Name: new("artifacts"), Port: new(artifacts), Protocol: new(corev1.ProtocolTCP)})
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service + "-leader",
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "manager.rukpak.io",
				"app.kubernetes.io/part-of": "rukpak",
			},
		},
		AddressType: kind,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       ports,
	}
}
