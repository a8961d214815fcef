// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/testenv"
)

var cluster = testenv.Shared{}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// stage is a definition of its own on the real API server, with custom resources.
type stage struct {
	testing.TB
	env       *testenv.Env
	admin     client.Client
	namespace string
}

func newStage(t testing.TB) *stage {
	t.Helper()
	env := cluster.Env(t)
	return &stage{TB: t, env: env, admin: newClient(t, env.Config()), namespace: env.NewNamespace(t)}
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// own gives definitions a group of this stage alone.
func (s *stage) own(crds ...*definition) {
	for _, crd := range crds {
		crd.Spec.Group = s.namespace + ".example.com"
		crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
	}
}

// install creates a definition, waits until it is served, and gives it as it is live.
func (s *stage) install(crd *definition) *definition {
	s.Helper()
	made := crd.DeepCopy()
	made.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	if err := s.admin.Create(s.Context(), made); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = s.admin.Delete(context.Background(), made) })
	return s.await(made, func() error {
		var list unstructured.UnstructuredList
		list.SetAPIVersion(made.Spec.Group + "/" + served(made))
		list.SetKind("WidgetList")
		return s.admin.List(s.Context(), &list, client.Limit(1))
	})
}

func served(crd *definition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func (s *stage) await(crd *definition, probe func() error) *definition {
	s.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := probe()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: %v", crd.Name, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	var live definition
	if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(crd), &live); err != nil {
		s.Fatal(err)
	}
	return &live
}

// widget is a custom resource with a spec in YAML.
func (s *stage) widget(crd *definition, version, name, spec string) *unstructured.Unstructured {
	s.Helper()
	var content any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		s.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Spec.Group + "/" + version, "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": s.namespace}, "spec": content,
	}}
}

func (s *stage) create(crd *definition, version, name, spec string) {
	s.Helper()
	if err := s.admin.Create(s.Context(), s.widget(crd, version, name, spec)); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) live(before, after *definition, bounds crdsafety.Live) []crdsafety.Finding {
	s.Helper()
	found, err := crdsafety.CheckLive(s.Context(), s.admin, before, after, nil, bounds)
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// told are findings of live custom resources, without the namespace of the stage.
func (s *stage) told(findings []crdsafety.Finding) string {
	return strings.ReplaceAll(strings.Join(lines(findings), "\n"), s.namespace+"/", "")
}

const (
	oldWidget = `{type: object, properties: {
size: {type: integer, nullable: true}, color: {type: string}, gone: {type: string}, ports: {type: array, items: {type: object, properties: {name: {type: string}, number: {type: integer}}}},
either: {x-kubernetes-int-or-string: true}, free: {type: object, x-kubernetes-preserve-unknown-fields: true}, deep: {type: object, additionalProperties: {type: string}},
min: {type: integer}, max: {type: integer}, bad: {type: string, pattern: "^x"}}}`
	newWidget = `{type: object, required: [color, mode], properties: {
size: {type: integer, maximum: 10}, color: {type: string, enum: [red, blue]}, mode: {type: string, default: easy},
ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, number: {type: integer}}}},
either: {x-kubernetes-int-or-string: true, pattern: "^a"}, free: {type: object, properties: {known: {type: string}}}, deep: {type: object, additionalProperties: {type: string, maxLength: 3}},
min: {type: integer}, max: {type: integer}, bad: {type: string, pattern: "^x"}},
x-kubernetes-validations: [{rule: "!has(self.min) || !has(self.max) || self.min <= self.max", message: min must not be above max},
{rule: "!has(self.size) || !has(oldSelf.size) || self.size >= oldSelf.size", message: it cannot shrink}]}`
)

var specs = map[string]string{
	"a-good":     `{color: red, size: 3, ports: [{name: a, number: 1}], either: abc, free: {known: x}, deep: {a: b}, min: 1, max: 2}`,
	"b-null":     `{color: red, size: null}`,
	"c-required": `{size: 3}`,
	"d-enum":     `{color: green}`,
	"e-maximum":  `{color: red, size: 11}`,
	"f-twice":    `{color: red, ports: [{name: a, number: 1}, {name: a, number: 2}]}`,
	"g-unnamed":  `{color: red, ports: [{name: a}, {number: 2}, {number: 3}]}`,
	"h-pruned":   `{color: red, gone: x, free: {other: 1}}`,
	"i-deep":     `{color: red, deep: {a: long, b: longer}}`,
	"j-rule":     `{color: red, min: 3, max: 2}`,
	"k-either":   `{color: red, either: 5}`,
	"l-either":   `{color: red, either: b5}`,
}

func TestLiveCustomResourcesAreJudgedAsByTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before, after := widgets(t, oldWidget), widgets(t, newWidget)
	s.own(before, after)
	before = s.install(before)
	for name, spec := range specs {
		s.create(before, "v1", name, spec)
	}
	found := s.live(before, after, crdsafety.Live{})
	for _, part := range []string{
		`spec.color: custom resource c-required: Required value (customResourceInvalid)`,
		`spec.color: custom resource d-enum: Unsupported value: supported values: "red", "blue" (customResourceInvalid)`,
		`spec.gone: custom resource h-pruned: has the field, which the schema does not know: it would be lost (customResourcePruned)`,
		`spec.free.other: custom resource h-pruned: has the field, which the schema does not know: it would be lost (customResourcePruned)`,
		`spec: custom resource j-rule: Invalid value: min must not be above max (customResourceInvalid)`,
		`spec.ports[*].name: custom resource g-unnamed: Required value (customResourceInvalid)`,
		`spec.ports[*]: custom resources f-twice, g-unnamed: Duplicate value (customResourceInvalid)`,
	} {
		if !strings.Contains("\n"+s.told(found)+"\n", "\n"+part+"\n") {
			t.Errorf("not told: %s\nbut:\n%s", part, s.told(found))
		}
	}
	invalid := map[string]bool{}
	for _, f := range found {
		if f.Rule == crdsafety.LiveInvalid {
			for _, name := range regexp.MustCompile(s.namespace+`/([a-z-]+)`).FindAllStringSubmatch(f.Message, -1) {
				invalid[name[1]] = true
			}
		}
	}
	// Now the same by the API server: what it refuses with the new definition.
	live := before.DeepCopy()
	live.Spec = after.Spec
	if err := s.admin.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	s.await(live, func() error {
		err := s.admin.Create(t.Context(), s.widget(after, "v1", "probe", `{color: green}`), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("the new schema is not used yet: %w", err)
		}
		return nil
	})
	for name, spec := range specs {
		err := s.admin.Create(t.Context(), s.widget(after, "v1", name+"-again", spec), client.DryRunAll)
		if refused := err != nil; refused != invalid[name] {
			t.Errorf("%s: refused by the API server: %v; by the check: %v\n%s", name, err, invalid[name], s.told(found))
		}
	}
}

func TestWhatWasInvalidBeforeIsNotHeldAgainstTheNewDefinition(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	free, before, after := widgets(t, `{type: object, properties: {a: {type: string}, b: {type: string}}}`),
		widgets(t, `{type: object, properties: {a: {type: string, maxLength: 1}, b: {type: string}}}`),
		widgets(t, `{type: object, properties: {a: {type: string, maxLength: 1}, b: {type: string, maxLength: 1}}}`)
	s.own(free, before, after)
	live := s.install(free)
	s.create(live, "v1", "w", `{a: long, b: long}`)
	before.Status = live.Status
	found := s.live(before, after, crdsafety.Live{})
	if diff := cmp.Diff("spec.b: custom resource w: Too long: may not be more than 1 byte (customResourceInvalid)", s.told(found)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStricterNewVersionNamesItAndNotTheOld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	loose, strict := `{type: object, properties: {container: {type: string}}}`, `{type: object, required: [container], properties: {container: {type: string}}}`
	before, after := widgets(t, "v1alpha1|"+loose), widgets(t, "v1alpha1|"+loose, "v1alpha2|"+strict)
	s.own(before, after)
	before = s.install(before)
	s.create(before, "v1alpha1", "w", `{}`)
	want := "v1alpha2 spec.container: custom resource w: Required value (customResourceInvalid)"
	if diff := cmp.Diff(want, s.told(s.live(before, after, crdsafety.Live{}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAllPagesAreReadAndOneLineTellsOfAll(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before, after := widgets(t, `{type: object, properties: {a: {type: string}}}`), widgets(t, `{type: object, properties: {a: {type: string, maxLength: 1}}}`)
	s.own(before, after)
	before = s.install(before)
	s.createMany(before, 53)
	counting := &counter{Lister: s.admin}
	found, err := crdsafety.CheckLive(t.Context(), counting, before, after, nil, crdsafety.Live{Page: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := "spec.a: 53 custom resources, such as w00000, w00001, w00002: Too long: may not be more than 1 byte (customResourceInvalid)"
	if diff := cmp.Diff(want, s.told(found)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if counting.calls.Load() != 6 || counting.most.Load() != 10 {
		t.Errorf("%d pages of at most %d, want 6 of 10", counting.calls.Load(), counting.most.Load())
	}
}

func (s *stage) createMany(crd *definition, count int) {
	s.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			return s.admin.Create(s.Context(), s.widget(crd, served(crd), fmt.Sprintf("w%05d", i), `{a: long}`))
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
}

// counter counts what is asked for.
type counter struct {
	crdsafety.Lister
	calls, most atomic.Int64
}

func (c *counter) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Lister.List(ctx, list, options...)
	c.calls.Add(1)
	c.most.Store(max(c.most.Load(), int64(len(list.(*unstructured.UnstructuredList).Items))))
	return err
}

// converted are two versions between which a webhook converts that listens at an address.
func (s *stage) converted(address string) (before, after *definition) {
	loose, strict := `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, maxLength: 1}}}`
	before, after = widgets(s, loose, loose), widgets(s, strict, strict)
	url := "https://" + address + "/convert"
	for _, crd := range []*definition{before, after} {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url},
			},
		}
	}
	s.own(before, after)
	return s.install(before), after
}

func listener(t testing.TB) net.Listener {
	t.Helper()
	made, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

func TestDeadConversionWebhookIsAFinding(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	gone := listener(t)
	_ = gone.Close()
	before, after := s.converted(gone.Addr().String())
	s.create(before, "v1", "w", `{a: long}`)
	got := s.told(s.live(before, after, crdsafety.Live{}))
	want := []string{
		"spec.a: custom resource w: Too long: may not be more than 1 byte (customResourceInvalid)",
		"v2: none of the custom resources can be read (a webhook converts them: see whether it runs): ",
		"connect: connection refused (customResourceUnread)",
	}
	for _, part := range want {
		if !strings.Contains(got, part) {
			t.Errorf("not told: %s\nbut:\n%s", part, got)
		}
	}
	if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "(customResourceUnread)") {
		t.Errorf("want two findings, got:\n%s", got)
	}
}

func TestSilentConversionWebhookIsAFindingWithinTheTimeOfAPage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before, after := s.converted(listener(t).Addr().String()) // it takes the connection and never answers
	s.create(before, "v1", "w", `{a: a}`)
	want := "v2: none of the custom resources can be read (a webhook converts them: see whether it runs): the API server did not answer in time (customResourceUnread)"
	if diff := cmp.Diff(want, s.told(s.live(before, after, crdsafety.Live{PageTime: time.Second}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMissingPermissionIsAFinding(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before, after := widgets(t, `{type: object}`), widgets(t, `{type: object, required: [a]}`)
	s.own(before, after)
	before = s.install(before)
	config := s.env.Config()
	config.Impersonate.UserName = testenv.Account(s.namespace, s.env.ServiceAccount(t, s.namespace))
	// The kinds are asked for as an administrator: an account may know them and not read them.
	nobody, err := client.New(config, client.Options{Mapper: s.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	found, err := crdsafety.CheckLive(t.Context(), nobody, before, after, nil, crdsafety.Live{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.told(found); !strings.Contains(got, "none of the custom resources can be read: widgets.") || !strings.Contains(got, "is forbidden") || found[0].Action != crdsafety.Warn {
		t.Errorf("got %s", got)
	}
}

// given are custom resources in memory.
type given []map[string]any

func (g given) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var asked client.ListOptions
	asked.ApplyOptions(options)
	from := 0
	_, _ = fmt.Sscan(asked.Continue, &from)
	to := min(len(g), from+int(asked.Limit))
	page := list.(*unstructured.UnstructuredList)
	for _, object := range g[from:to] {
		page.Items = append(page.Items, unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)})
	}
	if to < len(g) {
		page.SetContinue(fmt.Sprint(to))
	}
	return nil
}

func TestNothingKnownIsAnError(t *testing.T) {
	before, after := widgets(t, `{type: object}`), widgets(t, `{type: object, required: [a]}`)
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	unreachable := listing(func(context.Context, client.ObjectList, ...client.ListOption) error { return refused })
	_, err := crdsafety.CheckLive(t.Context(), unreachable, before, after, nil, crdsafety.Live{})
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), "custom resources of widgets.example.com in version v1") {
		t.Errorf("API server unreachable: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := crdsafety.CheckLive(ctx, given{}, before, after, nil, crdsafety.Live{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}

func TestTooSlowAsAWholeIsAFinding(t *testing.T) {
	before, after := widgets(t, `{type: object}`), widgets(t, `{type: object, required: [a]}`)
	var all given
	for i := range 30 {
		all = append(all, map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprint(i)}, "spec": map[string]any{"a": "x"}})
	}
	slow := pausing{all, 50 * time.Millisecond}
	found, err := crdsafety.CheckLive(t.Context(), slow, before, after, nil, crdsafety.Live{Page: 1, Time: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Rule != crdsafety.LiveUnread || found[1].Rule != crdsafety.LiveInvalid || !strings.HasSuffix(found[0].Message, "can be read: they could not all be read in the time there is") {
		t.Errorf("got %v", found)
	}
}

type pausing struct {
	given
	pause time.Duration
}

func (p pausing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	time.Sleep(p.pause)
	return p.given.List(ctx, list, options...)
}

func TestAListThatExpiresIsGoneOnWith(t *testing.T) {
	before, after := widgets(t, `{type: object}`), widgets(t, `{type: object, required: [a]}`)
	tokens := []string{}
	lister := func(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
		var asked client.ListOptions
		asked.ApplyOptions(options)
		tokens = append(tokens, asked.Continue)
		switch page := list.(*unstructured.UnstructuredList); asked.Continue {
		case "":
			page.SetContinue("old")
		case "old":
			expired := apierrors.NewResourceExpired("too old")
			expired.ErrStatus.ListMeta = metav1.ListMeta{Continue: "rest"}
			return expired
		}
		return nil
	}
	found, err := crdsafety.CheckLive(t.Context(), listing(lister), before, after, nil, crdsafety.Live{})
	if err != nil || len(found) > 0 || !slices.Equal(tokens, []string{"", "old", "rest"}) {
		t.Errorf("got %v, %v, asked with %q", found, err, tokens)
	}
}

type listing func(context.Context, client.ObjectList, ...client.ListOption) error

func (l listing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l(ctx, list, options...)
}

func TestManyDifferentFaultsAreBounded(t *testing.T) {
	before := widgets(t, `{type: object, x-kubernetes-preserve-unknown-fields: true}`)
	after := widgets(t, `{type: object}`)
	var all given
	for i := range 1000 {
		spec := map[string]any{fmt.Sprintf("f%d", i): "x"}
		all = append(all, map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprint(i)}, "spec": spec})
	}
	found, err := crdsafety.CheckLive(t.Context(), all, before, after, nil, crdsafety.Live{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 201 || found[0].Message != "800 further faults of custom resources are not told one by one" || found[0].Action != crdsafety.Block {
		t.Errorf("%d findings, the first: %v", len(found), found[0])
	}
}

func TestMessagesQuoteNoValues(t *testing.T) {
	before := widgets(t, `{type: object, properties: {a: {type: string}}}`)
	after := widgets(t, `{type: object, properties: {a: {type: string, pattern: "^x", maxLength: 2, enum: [z]}}}`)
	all := given{{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"a": "hidden"}}}
	found, err := crdsafety.CheckLive(t.Context(), all, before, after, nil, crdsafety.Live{})
	if err != nil || len(found) < 2 {
		t.Fatalf("got %v, %v, want several findings", found, err)
	}
	for _, f := range found {
		if strings.Contains(f.String(), "hidden") {
			t.Errorf("it quotes the value: %s", f)
		}
	}
}
