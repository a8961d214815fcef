// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/testenv"
)

const (
	fewResources  = 1_000
	manyResources = 10_000
	liveNamespace = "bench-live"
	// flat is how much more memory many custom resources may take than few: not more, but that the collector comes and goes.
	flat = 1.25
)

// liveOnes validates a few and many custom resources of two definitions against schemas that half of them do not fit.
func liveOnes(ctx context.Context, b *bench) (rows []Row, err error) {
	env, err := testenv.Start(ctx, testenv.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	config := env.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	scheme := kinds()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: liveNamespace}}); err != nil {
		return nil, err
	}
	few, many := &lived{admin: admin, count: b.scaled(fewResources)}, &lived{admin: admin, count: b.scaled(manyResources)}
	for i, l := range []*lived{few, many} {
		b.say("   create %d custom resources", l.count)
		if err := l.create(ctx, fmt.Sprintf("widgets%d", i)); err != nil {
			return nil, err
		}
	}
	rounds, err := sides(b.rounds,
		func(int) (float64, error) { return many.check(ctx) },
		func(int) (float64, error) { return few.check(ctx) },
		func(int, Round) {})
	if err != nil {
		return nil, err
	}
	memory := compared(fmt.Sprintf("%d live custom resources: extra memory, without garbage", many.count), "MiB",
		fmt.Sprintf("%d of them", few.count), atMost(flat), rounds)
	return []Row{
		{What: fmt.Sprintf("%d live custom resources: validated", many.count), Measured: median(many.seconds), Unit: "s", Target: below(10)},
		{What: fmt.Sprintf("%d live custom resources: validated", few.count), Measured: median(few.seconds), Unit: "s"},
		memory,
	}, nil
}

// lived is a definition with custom resources.
type lived struct {
	admin         client.Client
	count         int
	before, after *definition
	seconds       []float64
}

func (l *lived) create(ctx context.Context, plural string) error {
	l.before, l.after = widget(plural, nil), widget(plural, []string{"color"})
	if err := l.admin.Create(ctx, l.before); err != nil {
		return err
	}
	if err := l.served(ctx); err != nil {
		return err
	}
	var creates []func(context.Context) error
	for i := range l.count {
		spec := map[string]any{"size": int64(i), "text": fmt.Sprintf("%0512d", i), "ports": []any{map[string]any{"name": "a", "number": int64(1)}}}
		if i%2 == 0 {
			spec["color"] = "red"
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": l.before.Spec.Group + "/v1", "kind": l.before.Spec.Names.Kind, "spec": spec,
			"metadata": map[string]any{"name": fmt.Sprintf("w-%05d", i), "namespace": liveNamespace},
		}}
		creates = append(creates, func(ctx context.Context) error { return l.admin.Create(ctx, object) })
	}
	return inParallel(ctx, parallelism, creates)
}

// served waits until custom resources can be listed, and takes the definition as it is then.
func (l *lived) served(ctx context.Context) error {
	for {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(l.before.Spec.Group + "/v1")
		list.SetKind(l.before.Spec.Names.ListKind)
		err := l.admin.List(ctx, list, client.Limit(1))
		if err == nil {
			return l.admin.Get(ctx, client.ObjectKeyFromObject(l.before), l.before)
		}
		if pauseErr := pause(ctx, 100*time.Millisecond); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

// check validates twice: for the time, and for the memory, which the collector is asked to tidy up before each look.
func (l *lived) check(ctx context.Context) (float64, error) {
	begun := time.Now()
	if err := l.validate(ctx, l.admin); err != nil {
		return 0, err
	}
	l.seconds = append(l.seconds, time.Since(begun).Seconds())
	looking := &looker{Lister: l.admin, base: inUse()}
	err := l.validate(ctx, looking)
	return float64(looking.peak) / (1 << 20), err
}

func (l *lived) validate(ctx context.Context, lister crdsafety.Lister) error {
	found, err := crdsafety.CheckLive(ctx, lister, l.before, l.after, nil, crdsafety.Live{})
	if err == nil && len(found) == 0 {
		err = errors.New("half of the custom resources do not fit, and nothing is found")
	}
	return err
}

// looker looks at the memory in use after each page.
type looker struct {
	crdsafety.Lister
	base, peak uint64
}

// List reads a page.
func (l *looker) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := l.Lister.List(ctx, list, options...)
	if used := inUse(); used > l.base {
		l.peak = max(l.peak, used-l.base)
	}
	return err
}

func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func widget(plural string, required []string) *definition {
	text, number := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer"}
	port := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "number": number}}
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Required: required, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": number, "color": text, "text": text,
		"ports": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &port}},
	}}
	whole := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
	made := &definition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".bench.example.com"}}
	made.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "bench.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "Kind" + plural, ListKind: "Kind" + plural + "List"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
		}},
	}
	return made
}
