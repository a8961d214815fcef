// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type createAccountVerb struct {
	creation
	clusterRole, namespaceRole, role string
}

func (s *session) createAccountCommand() *cobra.Command {
	v := &createAccountVerb{creation: creation{session: s}}
	cmd := &cobra.Command{
		Use:     "account NAME (--cluster-role ROLE | --namespace-role ROLE | --role ROLE)",
		Aliases: []string{"serviceaccount"},
		Short:   "Create a service account that instances can act as, with rights",
		Long: `Creates a service account in the namespace and binds a role that exists to it. Instances that name the
account may do exactly what the role allows, no matter what their content asks for: give it no more than
the content needs. A plan lists what is missing.

  --cluster-role ROLE     the ClusterRole holds in the whole cluster (a ClusterRoleBinding)
  --namespace-role ROLE   the ClusterRole holds in this namespace only (a RoleBinding)
  --role ROLE             a Role of this namespace (a RoleBinding)`,
		Example: `  # Content that stays in the namespace "team"
  rukpak create account installer -n team --namespace-role admin

  # Content with CRDs, cluster roles or namespaces: it may do anything
  rukpak create account installer -n team --cluster-role cluster-admin`,
		Args: onlyName("service account"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.clusterRole == "" && v.namespaceRole == "" && v.role == "" {
				return usagef(cmd, "one of --cluster-role, --namespace-role and --role is missing: an account without rights can activate nothing")
			}
			if err := v.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.addTo(cmd)
	cmd.Flags().StringVar(&v.clusterRole, "cluster-role", "", "ClusterRole to grant in the whole cluster")
	cmd.Flags().StringVar(&v.namespaceRole, "namespace-role", "", "ClusterRole to grant in this namespace only")
	cmd.Flags().StringVar(&v.role, "role", "", "Role of this namespace to grant")
	return cmd
}

func (v *createAccountVerb) run(ctx context.Context, name string) error {
	namespace, err := v.namespace()
	if err != nil {
		return err
	}
	if err := v.create(ctx, account(namespace, name, v.clusterRole, v.namespaceRole, v.role)...); err != nil || v.dryRun == dryRunClient {
		return err
	}
	v.warnRole(ctx, "", "ClusterRole", v.clusterRole)
	v.warnRole(ctx, "", "ClusterRole", v.namespaceRole)
	v.warnRole(ctx, namespace, "Role", v.role)
	return nil
}

// account is a service account with the bindings that give it roles; a role "" is none.
func account(namespace, name, clusterRole, namespaceRole, role string) []client.Object {
	objects := []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	reference := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	if clusterRole != "" {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s:%s:%s", namespace, name, clusterRole)},
			Subjects:   subjects, RoleRef: reference("ClusterRole", clusterRole),
		})
	}
	if namespaceRole != "" {
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ":" + namespaceRole},
			Subjects:   subjects, RoleRef: reference("ClusterRole", namespaceRole),
		})
	}
	if role != "" {
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ":role:" + role},
			Subjects:   subjects, RoleRef: reference("Role", role),
		})
	}
	return objects
}
