// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// stagesFile is the name under which kwok finds what its nodes and Pods do.
const stagesFile = "stages.yaml"

//go:embed stages.yaml
var stages []byte

// awaitControllers waits for what kube-controller-manager does last of what tests depend on: a service account in
// the default namespace, without which no Pod can be made there.
func (e *Env) awaitControllers(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(e.Config())
	if err != nil {
		return err
	}
	return e.await(ctx, "controller manager", e.players[0], func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// addNodes makes the nodes and waits until kwok has them ready.
func (e *Env) addNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(e.Config())
	if err != nil {
		return err
	}
	for i := range e.options.Nodes {
		if err := addNode(ctx, client, fmt.Sprintf("node-%d", i+1)); err != nil {
			return err
		}
	}
	kwok := e.players[len(e.players)-1]
	return e.await(ctx, "kwok", kwok, func(ctx context.Context) error { return nodesReady(ctx, client) })
}

func addNode(ctx context.Context, client kubernetes.Interface, name string) error {
	labels := map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	// Admission marks every new node as not ready; the controller that would take the mark away is turned off.
	node.Spec.Taints = nil
	if _, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("taints of node %s: %w", name, err)
	}
	return nil
}

var errNotReady = errors.New("not ready")

func nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		if !nodeReady(&nodes.Items[i]) {
			return fmt.Errorf("node %s: %w", nodes.Items[i].Name, errNotReady)
		}
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
