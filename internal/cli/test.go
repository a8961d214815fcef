// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/provisioner"
)

// tested is `test -o json`.
type tested struct {
	Instance string       `json:"instance"`
	Revision string       `json:"revision"`
	Tests    []testedTask `json:"tests"`
}

type testedTask struct {
	Phase   string  `json:"phase"`
	Object  string  `json:"object"`
	State   string  `json:"state"` // Succeeded, Failed or Running, if the time was up
	Message string  `json:"message,omitempty"`
	Seconds float64 `json:"seconds"`
	Logs    string  `json:"logs,omitempty"` // the end of them, of what failed
}

type testVerb struct {
	*session
	output  output
	timeout time.Duration
}

func (s *session) testCommand() *cobra.Command {
	v := &testVerb{session: s}
	cmd := &cobra.Command{
		Use:   "test INSTANCE",
		Short: "Run the tests that the active revision brings, such as the test hooks of a chart",
		Long: `Runs the tasks of the moment Test of the active revision of an instance, phase by phase, and waits for their end.
A phase begins when all tests of the one before have succeeded.

It is you who runs them, with your own rights: you need those to read the manifests of the revision and to create and
delete the objects of the tests. An object that is somebody else's is never touched. What a test made is deleted when
its annotation rukpak.io/delete-task says so, and in the namespace of the instance at the latest with that.`,
		Example: `  rukpak test web
  rukpak test web --timeout 2m -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if v.timeout <= 0 {
				return usagef(cmd, "--timeout is %s; it has to be longer", v.timeout)
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Minute, "Time that each test may take")
	return cmd
}

func (v *testVerb) run(ctx context.Context, word string) error {
	instance, err := v.instanceNamed(ctx, word)
	if err != nil {
		return err
	}
	if instance.Status.Active == nil {
		return failf(ExitError, "instance %s has no active revision to test", instance.Name).
			hintf("%s tells why", v.command("describe %s", instance.Name))
	}
	revision, err := v.revisionNamed(ctx, instance.Status.Active.Name)
	if err != nil {
		return err
	}
	set, err := v.manifestsOf(ctx, revision)
	if err != nil {
		return err
	}
	phases := activate.Due(set.Phases, provisioner.OnTest)
	if len(phases) == 0 {
		v.say("%s brings no tests", revision.Name)
		if !v.output.forPeople() {
			return v.value(tested{Instance: instance.Name, Revision: revision.Name, Tests: []testedTask{}}, v.output.format)
		}
		return nil
	}
	run, err := v.newRun(instance, phases)
	if err != nil {
		return err
	}
	failure := run.carryOut(ctx)
	if err := run.show(instance, revision); err != nil {
		return err
	}
	return failure
}

// testRun is one run of all tests.
type testRun struct {
	*testVerb
	cluster client.Client
	engine  *activate.Engine
	pods    kubernetes.Interface
	owner   ownership.Owner
	phases  []provisioner.Phase
	known   map[string]activate.TaskReport // by phase and object
	order   []string
	logs    map[string]string
}

func (v *testVerb) newRun(instance *v1alpha1.BundleInstance, phases []provisioner.Phase) (*testRun, error) {
	cluster, err := v.client()
	if err != nil {
		return nil, err
	}
	config, err := v.config()
	if err != nil {
		return nil, err
	}
	pods, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if object.GetNamespace() == instance.Namespace {
				object.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: v1alpha1.GroupVersion.String(), Kind: "BundleInstance", Name: instance.Name, UID: instance.UID,
				}})
			}
		}
	}
	return &testRun{
		testVerb: v, cluster: cluster, pods: pods, phases: phases,
		engine: activate.New(activate.Config{Served: activate.ServedBy(served)}),
		owner:  ownership.Owner{UID: instance.UID, Namespace: instance.Namespace, Name: instance.Name},
		known:  map[string]activate.TaskReport{}, logs: map[string]string{},
	}, nil
}

// carryOut runs the tests until all have ended or one has failed.
func (r *testRun) carryOut(ctx context.Context) error {
	line := r.progress()
	defer line.Close()
	options := activate.Options{DefaultNamespace: r.owner.Namespace, Tasks: activate.Tasks{
		Moment: provisioner.OnTest, Run: fmt.Sprintf("test-%d", r.now().UnixNano()), Deadline: r.timeout,
		Known: func(phase string, id ownership.ID) (activate.TaskReport, bool) {
			report, ok := r.known[phase+" "+id.String()]
			return report, ok
		},
		Note: r.note,
	}}
	for deadline := r.now().Add(r.timeout); ; {
		before := len(r.known)
		result := r.engine.Apply(ctx, r.cluster, r.owner, r.phases, options)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case result.Complete:
			return nil
		case len(result.Failed()) > 0 && !result.Transient():
			return r.failure(result)
		case len(r.known) != before:
			deadline = r.now().Add(r.timeout) // another test has begun
		case r.now().After(deadline.Add(pollInterval)):
			return failf(ExitTimeout, "the time is up: %s", result)
		}
		line.Show("%s: %s", r.owner.Name, result)
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

func (r *testRun) failure(result activate.Result) error {
	failed := 0
	for _, report := range r.known {
		if report.State == activate.TaskFailed {
			failed++
		}
	}
	if failed == 0 { // they did not even begin
		return failf(ExitError, "%w", result.Err())
	}
	return failf(ExitFailed, "%s failed", plural.Of(failed, "test"))
}

// note keeps what became of tests. Of what failed the logs are read now: what made them may be deleted next.
func (r *testRun) note(ctx context.Context, reports []activate.TaskReport) error {
	for _, report := range reports {
		key := report.Phase + " " + report.ID.String()
		if _, seen := r.known[key]; !seen {
			r.order = append(r.order, key)
		}
		r.known[key] = report
		if report.State == activate.TaskFailed {
			r.logs[key] = r.logsOf(ctx, report)
		}
	}
	return nil
}

// The end of logs that is shown.
const (
	maxLogLines = 50
	maxLogBytes = 16 << 10
)

// logsOf reads the end of what the Pods of a test wrote; why it cannot be read is said in its place.
func (r *testRun) logsOf(ctx context.Context, report activate.TaskReport) string {
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + report.ID.Name}
	if report.ID.Kind == "Job" {
		options = metav1.ListOptions{LabelSelector: "batch.kubernetes.io/controller-uid=" + string(report.UID)}
	}
	found, err := r.pods.CoreV1().Pods(report.ID.Namespace).List(ctx, options)
	if err != nil {
		return "the logs cannot be read: " + err.Error()
	}
	var out strings.Builder
	for i := range found.Items {
		pod := &found.Items[i]
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			fmt.Fprintf(&out, "%s/%s:\n%s\n", pod.Name, container.Name, paint.CleanLines(r.logOf(ctx, pod, container.Name)))
		}
	}
	return strings.TrimRight(out.String(), "\n")
}

func (r *testRun) logOf(ctx context.Context, pod *corev1.Pod, container string) string {
	lines, limit := int64(maxLogLines), int64(maxLogBytes)
	stream, err := r.pods.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, TailLines: &lines, LimitBytes: &limit}).Stream(ctx)
	if err != nil {
		return "the logs cannot be read: " + err.Error()
	}
	defer stream.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(stream, maxLogBytes))
	if err != nil {
		return "the logs broke off: " + err.Error()
	}
	return strings.TrimRight(string(text), "\n")
}

func (r *testRun) show(instance *v1alpha1.BundleInstance, revision *v1alpha1.InstanceRevision) error {
	shown := tested{Instance: instance.Name, Revision: revision.Name, Tests: []testedTask{}}
	for _, key := range r.order {
		report := r.known[key]
		one := testedTask{Phase: report.Phase, Object: report.ID.String(), State: string(report.State), Message: report.Message, Logs: r.logs[key]}
		if !report.Ended.IsZero() {
			one.Seconds = report.Ended.Sub(report.Started).Seconds()
		}
		shown.Tests = append(shown.Tests, one)
	}
	if !r.output.forPeople() {
		return r.value(shown, r.output.format)
	}
	painter := r.painter()
	for _, one := range shown.Tests {
		mark := map[string]string{string(activate.TaskSucceeded): painter.Good("✓"), string(activate.TaskFailed): painter.Bad("✗")}[one.State]
		if mark == "" {
			mark = painter.Busy("…")
		}
		text := mark + " " + paint.Clean(one.Object)
		if one.Message != "" {
			text += ": " + paint.Clean(one.Message)
		}
		r.print("%s", text)
		for line := range strings.Lines(one.Logs) {
			r.print("    %s", visible(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}
