// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/cli/table"
)

type getVerb struct {
	*session
	output   output
	all      bool
	watch    bool
	selector string
}

func (s *session) getCommand() *cobra.Command {
	v := &getVerb{session: s}
	cmd := &cobra.Command{
		Use:   "get [instances|revisions|bundles|approvals|classes|all] [NAME...]",
		Short: "List instances, revisions, bundles, approvals or classes",
		Long: `Lists objects in a table; without a kind it lists instances. STATE is one word for how the object is; -o wide
says why. The name of an instance in place of one of a revision stands for all its revisions.`,
		Example: `  rukpak get
  rukpak get revisions -A
  rukpak get revisions web
  rukpak get instances,bundles
  rukpak get bundle web-v1 -o yaml
  rukpak get instances -w`,
		ValidArgsFunction: s.completeKindAndName("all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			wanted, names, err := v.parse(cmd, args)
			if err != nil {
				return err
			}
			return v.run(cmd.Context(), wanted, names)
		},
	}
	v.output.addTo(cmd, withTemplates(formatWide)...)
	cmd.Flags().BoolVarP(&v.all, "all-namespaces", "A", false, "List those of all namespaces")
	cmd.Flags().BoolVarP(&v.watch, "watch", "w", false, "Go on and print each change")
	cmd.Flags().StringVarP(&v.selector, "selector", "l", "", "List those with these labels, such as a=b,c!=d")
	return cmd
}

// parse reads "instances", "instance web db", "instance/web" or "all".
func (v *getVerb) parse(cmd *cobra.Command, args []string) ([]kind, []string, error) {
	if len(args) == 0 {
		instances, _ := kindOf("instance")
		return []kind{instances}, nil, nil
	}
	if args[0] == "all" {
		if len(args) > 1 || v.watch {
			return nil, nil, usagef(cmd, "\"get all\" takes neither names nor --watch")
		}
		return kinds(), nil, nil
	}
	word, names := args[0], args[1:]
	if prefixed, name, ok := splitName(word); ok {
		word, names = prefixed.name, append([]string{name}, names...)
	}
	if strings.Contains(word, ",") {
		return v.parseKinds(cmd, word, names)
	}
	known, ok := kindOf(word)
	if !ok {
		return nil, nil, v.noKind(args[0])
	}
	if len(names) > 0 && (v.all || v.selector != "") {
		return nil, nil, usagef(cmd, "names cannot be combined with --all-namespaces or --selector")
	}
	if v.watch && len(names) > 1 {
		return nil, nil, usagef(cmd, "--watch takes one name at most")
	}
	return []kind{known}, names, nil
}

// parseKinds reads "instances,bundles".
func (v *getVerb) parseKinds(cmd *cobra.Command, word string, names []string) ([]kind, []string, error) {
	if len(names) > 0 || v.watch {
		return nil, nil, usagef(cmd, "several kinds take neither names nor --watch")
	}
	var wanted []kind
	for _, one := range strings.Split(word, ",") {
		known, ok := kindOf(one)
		if !ok {
			return nil, nil, v.noKind(one)
		}
		wanted = append(wanted, known)
	}
	return wanted, nil, nil
}

func (v *getVerb) noKind(word string) error {
	return failf(ExitUsage, "%q is not a kind of RukPak; there are instances, revisions, bundles, approvals and classes", word).
		hintf("for an instance of that name say %s", v.command("get instance %s", word))
}

func (v *getVerb) run(ctx context.Context, wanted []kind, names []string) error {
	if len(wanted) > 1 {
		return v.everything(ctx, wanted)
	}
	list, err := v.fetch(ctx, wanted[0], names)
	if err != nil {
		return err
	}
	if v.watch {
		return v.follow(ctx, wanted[0], names)
	}
	if !v.output.forPeople() {
		return v.machine(list, len(names) == 1)
	}
	return v.table(wanted[0], list, false)
}

// fetch gets the named objects, or lists all.
func (v *getVerb) fetch(ctx context.Context, k kind, names []string) (client.ObjectList, error) {
	cluster, namespace, err := v.place()
	if err != nil {
		return nil, err
	}
	list := k.list()
	if len(names) == 0 {
		options, err := v.listOptions(namespace, "")
		if err != nil {
			return nil, err
		}
		return list, cluster.List(ctx, list, options)
	}
	var found []runtime.Object
	for _, name := range names {
		object := k.object()
		key := client.ObjectKey{Name: name, Namespace: namespace}
		if k.cluster {
			key.Namespace = ""
		}
		err := cluster.Get(ctx, key, object)
		if of := v.revisionsNamedBy(ctx, k, name, err); len(of) > 0 {
			found = append(found, of...)
			continue
		}
		if err != nil {
			return nil, v.missing(err, k.name, name, namespace)
		}
		found = append(found, object)
	}
	return list, meta.SetList(list, found)
}

// revisionsNamedBy are the revisions of the instance that is named in place of one of them.
func (v *getVerb) revisionsNamedBy(ctx context.Context, k kind, name string, missing error) []runtime.Object {
	if k.name != "revision" || !apierrors.IsNotFound(missing) {
		return nil
	}
	instance, err := v.instanceNamed(ctx, name)
	if err != nil {
		return nil
	}
	revisions, err := v.revisionsOf(ctx, instance)
	if err != nil {
		return nil
	}
	var found []runtime.Object
	for i := range revisions {
		found = append(found, &revisions[i])
	}
	return found
}

func (v *getVerb) listOptions(namespace, name string) (*client.ListOptions, error) {
	options := &client.ListOptions{Namespace: namespace}
	if v.all {
		options.Namespace = ""
	}
	if name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name)
	}
	if v.selector != "" {
		selector, err := labels.Parse(v.selector)
		if err != nil {
			return nil, failf(ExitUsage, "--selector %q: %w", v.selector, err)
		}
		options.LabelSelector = selector
	}
	return options, nil
}

// everything prints a table of each kind that there is something of.
func (v *getVerb) everything(ctx context.Context, wanted []kind) error {
	if !v.output.forPeople() {
		return failf(ExitUsage, "several kinds are printed as tables only; -o %s needs one kind", v.output.format)
	}
	any := false
	for _, k := range wanted {
		list, err := v.fetch(ctx, k, nil)
		if err != nil {
			return err
		}
		if meta.LenList(list) == 0 {
			continue
		}
		if any {
			v.print("")
		}
		any = true
		v.print("%s", v.painter().Bold(strings.ToUpper(k.plural[:1])+k.plural[1:]))
		if err := v.table(k, list, true); err != nil {
			return err
		}
	}
	if !any {
		v.nothing("objects of RukPak")
	}
	return nil
}

func (v *getVerb) machine(list client.ObjectList, single bool) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	if single && len(items) == 1 {
		return v.object(items[0], v.output.format, "")
	}
	if v.output.format == formatName {
		for _, item := range items {
			if err := v.object(item, v.output.format, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return v.object(list, v.output.format, "")
}

func (v *getVerb) rows() rowMaker {
	return rowMaker{paint: v.painter(), now: v.now(), wide: v.output.format == formatWide, namespace: v.all}
}

func (v *getVerb) table(k kind, list client.ObjectList, quiet bool) error {
	if meta.LenList(list) == 0 && !quiet {
		v.nothing(k.plural)
		return nil
	}
	rows := v.rows()
	shown := table.Table{Titles: rows.titles(k)}
	var objects []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	slices.SortFunc(objects, byNamespaceAndName)
	for _, object := range objects {
		shown.Add(rows.row(object)...)
	}
	return shown.Write(v.Out)
}

// nothing says so on standard error, as kubectl does.
func (v *getVerb) nothing(what string) {
	if v.all {
		v.say("There are no %s.", what)
		return
	}
	namespace, _ := v.namespace()
	v.say("There are no %s in namespace %q.", what, namespace)
}

// byNamespaceAndName sorts, with numbers at the end of names by value: web-9 before web-10.
func byNamespaceAndName(a, b client.Object) int {
	if order := strings.Compare(a.GetNamespace(), b.GetNamespace()); order != 0 {
		return order
	}
	aStem, aNumber := splitNumber(a.GetName())
	bStem, bNumber := splitNumber(b.GetName())
	if order := strings.Compare(aStem, bStem); order != 0 || aNumber == bNumber {
		return order
	}
	if aNumber < bNumber {
		return -1
	}
	return 1
}

// splitNumber splits "web-10" into "web-" and 10; without a number that is 0.
func splitNumber(name string) (string, int64) {
	stem := strings.TrimRight(name, "0123456789")
	if digits := name[len(stem):]; digits != "" && len(digits) < 18 {
		var value int64
		for _, digit := range digits {
			value = value*10 + int64(digit-'0')
		}
		return stem, value
	}
	return name, 0
}
