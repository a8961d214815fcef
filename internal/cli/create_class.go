// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/plain"
)

type createClassVerb struct {
	creation
	provisioner, approval, reclaim, account string
	installer                               string
	notify                                  []string
	namespaces, parameters                  string
	isDefault                               bool
}

func (s *session) createClassCommand() *cobra.Command {
	v := &createClassVerb{creation: creation{session: s}}
	cmd := &cobra.Command{
		Use:   "class NAME --provisioner ID",
		Short: "Create a class: a provisioner and the rules under which it may be used",
		Long: `Creates a ProvisionerClass. It names the provisioner that turns content into objects, and says who
must approve what it makes: somebody who holds the verb "approve" on the class (Manual), or nobody (Automatic).

Rules that approve (mode Policy), two persons, approvals that expire and deletions that are approved apart are
written as YAML: begin with --dry-run=client -o yaml, and see docs/approval.md and docs/policies.md.`,
		Example: `  # For folders of Kubernetes manifests; used where a bundle names no class
  rukpak create class plain --provisioner plain.rukpak.io --default

  # A class for trees of Kustomizations, see docs/provisioners/kustomize.md.
  rukpak create class kustomize --provisioner kustomize.rukpak.io

  # Without approval, only in namespaces labelled stage=dev, as the service account "installer" of each
  rukpak create class dev --provisioner plain.rukpak.io --approval Automatic \
    --namespaces stage=dev --default-service-account installer

  # What is approved is activated as a stronger account than the one that heals it
  rukpak create class strong --provisioner plain.rukpak.io --installer rukpak-installers/strong

  # Whoever approves is told of what waits, as CloudEvents, see docs/approval.md
  rukpak create class told --provisioner plain.rukpak.io --notify chat=https://chat.example.com/hook`,
		Args: onlyName("class"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.checkFlags(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&v.provisioner, "provisioner", "", "ID of the provisioner, such as "+plain.ID)
	flags.StringVar(&v.approval, "approval", string(v1alpha1.ApprovalManual), "Who approves: Manual (a person or a controller) or Automatic (nobody)")
	flags.StringVar(&v.reclaim, "reclaim", string(v1alpha1.ReclaimDelete), "What becomes of active objects when their instance is deleted: Delete or Retain")
	flags.StringVar(&v.account, "default-service-account", "", "Service account, in the instance's namespace, of instances that name none")
	flags.StringVar(&v.installer, "installer", "", "Stronger service account, as NAMESPACE/NAME, that activates approved revisions and does nothing else")
	flags.StringArrayVar(&v.notify, "notify", nil, "Receiver of CloudEvents about what waits for approval and what was decided, as NAME=URL; can be given several times")
	flags.StringVar(&v.namespaces, "namespaces", "", "Label selector of the namespaces that may use the class; all if not set")
	flags.StringVar(&v.parameters, "parameters", "", "YAML or JSON file with parameters for the provisioner")
	flags.BoolVar(&v.isDefault, "default", false, "Use this class where a bundle names none")
	return cmd
}

func (v *createClassVerb) checkFlags(cmd *cobra.Command) error {
	if v.provisioner == "" {
		return usagef(cmd, "--provisioner is missing; for plain manifests it is %s", plain.ID)
	}
	if err := oneOf(cmd, "approval", v.approval, string(v1alpha1.ApprovalManual), string(v1alpha1.ApprovalAutomatic)); err != nil {
		return err
	}
	if err := oneOf(cmd, "reclaim", v.reclaim, string(v1alpha1.ReclaimDelete), string(v1alpha1.ReclaimRetain)); err != nil {
		return err
	}
	if err := v.checkInstaller(cmd); err != nil {
		return err
	}
	if _, err := parseReceivers(v.notify); err != nil {
		return usagef(cmd, "--notify %w", err)
	}
	return v.check(cmd)
}

func (v *createClassVerb) checkInstaller(cmd *cobra.Command) error {
	if v.installer == "" {
		return nil
	}
	namespace, account, both := strings.Cut(v.installer, "/")
	if !both || namespace == "" || account == "" || strings.Contains(account, "/") {
		return usagef(cmd, "--installer %s: it is NAMESPACE/NAME of a service account", v.installer)
	}
	if v.approval == string(v1alpha1.ApprovalAutomatic) {
		return usagef(cmd, "--installer needs --approval %s: with %s, everybody who may use the class could do what the installer may", v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic)
	}
	return nil
}

func (v *createClassVerb) run(ctx context.Context, name string) error {
	class, err := v.class(name)
	if err != nil {
		return err
	}
	if err := v.create(ctx, class); err != nil || v.dryRun == dryRunClient {
		return err
	}
	v.warnProvisioner(v.provisioner)
	return nil
}

func (v *createClassVerb) class(name string) (*v1alpha1.ProvisionerClass, error) {
	class := &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ProvisionerClassSpec{
			Provisioner:   v.provisioner,
			Approval:      v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalMode(v.approval)},
			ReclaimPolicy: v1alpha1.ReclaimPolicy(v.reclaim),
		},
	}
	if v.isDefault {
		class.Annotations = map[string]string{v1alpha1.AnnotationDefaultClass: "true"}
	}
	if v.account != "" {
		class.Spec.Identity = &v1alpha1.ClassIdentity{DefaultServiceAccount: v.account}
	}
	if v.installer != "" {
		if class.Spec.Identity == nil {
			class.Spec.Identity = &v1alpha1.ClassIdentity{}
		}
		namespace, account, _ := strings.Cut(v.installer, "/") // as checkFlags has it
		class.Spec.Identity.Installer = &v1alpha1.AccountReference{Namespace: namespace, Name: account}
	}
	receivers, err := parseReceivers(v.notify)
	if err != nil {
		return nil, failf(ExitUsage, "--notify %w", err)
	}
	class.Spec.Approval.Notify = receivers
	if v.namespaces != "" {
		selector, err := metav1.ParseToLabelSelector(v.namespaces)
		if err != nil {
			return nil, failf(ExitUsage, "--namespaces %q: %w", v.namespaces, err)
		}
		class.Spec.AllowedNamespaces = selector
	}
	if v.parameters != "" {
		parameters, err := v.rawObject("parameters", v.parameters)
		if err != nil {
			return nil, err
		}
		class.Spec.Parameters = parameters
	}
	return class, nil
}

// rawObject reads a YAML or JSON object from a file, or from standard input for "-".
func (s *session) rawObject(flag, file string) (*runtime.RawExtension, error) {
	text, err := s.readFile(file)
	if err != nil {
		return nil, failf(ExitUsage, "--%s: %w", flag, err)
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, failf(ExitUsage, "--%s: %s: %w", flag, file, err)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, failf(ExitUsage, "--%s: %s does not hold an object (\"key: value\")", flag, file)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

func (s *session) readFile(file string) ([]byte, error) { return s.readUpTo(file, maxInput) }

func (s *session) readUpTo(file string, limit int64) ([]byte, error) {
	if file == "-" {
		return readAll(s.In, limit)
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	text, err := readAll(opened, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}
