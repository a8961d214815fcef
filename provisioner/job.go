// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/types"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

// answer does what a job asks for. It never panics.
func (s *server) answer(ctx context.Context, log *slog.Logger, job *contentv1.Job) (result contentv1.Result) {
	defer func() {
		if panicked := recover(); panicked != nil {
			log.Error("the provisioner panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
			result = contentv1.Result{Error: fmt.Sprintf("panic: %v; the log of the provisioner has more", panicked)}
		}
	}()
	if job.Kind == contentv1.JobValidate {
		return refusalOf(s.provisioner.Validate(ctx, nil, job.Parameters))
	}
	if job.Kind != contentv1.JobRender || job.Instance == nil {
		return contentv1.Result{Error: fmt.Sprintf("this provisioner is older than the manager, and knows no jobs of kind %q", job.Kind)}
	}
	tree, release, err := s.trees.open(ctx, job.Content, func(ctx context.Context, into *unpacker) error { return s.api.content(ctx, job.ID, into) })
	if err != nil {
		return contentv1.Result{Error: fmt.Sprintf("get the content: %v", err)}
	}
	defer release()
	return s.render(ctx, log, job, tree)
}

func (s *server) render(ctx context.Context, log *slog.Logger, job *contentv1.Job, tree fs.FS) contentv1.Result {
	if err := s.provisioner.Validate(ctx, tree, job.Parameters); err != nil {
		return refusalOf(err)
	}
	req := Request{
		Instance: types.NamespacedName{Namespace: job.Instance.Namespace, Name: job.Instance.Name}, Content: tree,
		Parameters: job.Parameters, Config: job.Config, Revision: job.Revision, Upgrade: job.Upgrade,
	}
	for _, origin := range job.Origins {
		req.Origins = append(req.Origins, Origin{Path: origin.Path, Kind: origin.Kind, Ref: origin.Ref})
	}
	if job.Cluster != nil {
		req.Cluster = Cluster{Version: job.Cluster.Version, APIs: job.Cluster.APIs}
	}
	if job.Reads {
		req.Reader = jobReader{s.api, job.ID}
	}
	result, err := s.provisioner.Render(ctx, req)
	if err != nil {
		return refusalOf(err)
	}
	if err := result.Check(); err != nil {
		log.Error("the result breaks the contract of package provisioner", "error", err)
		return contentv1.Result{Error: fmt.Sprintf("the result breaks the contract of package provisioner: %v", err)}
	}
	sent := contentv1.Result{Nothing: result.Nothing, Notes: result.Notes, ConfigSchema: result.ConfigSchema, Varies: result.Varies}
	for _, phase := range result.Phases {
		made := contentv1.Phase{Name: phase.Name, Objects: phase.Objects}
		for _, moment := range phase.On {
			made.On = append(made.On, string(moment))
		}
		sent.Phases = append(sent.Phases, made)
	}
	return sent
}

// refusalOf tells bad input from what may pass.
func refusalOf(err error) (result contentv1.Result) {
	if err == nil {
		return result
	}
	for _, fault := range InputErrors(err) {
		result.Faults = append(result.Faults, contentv1.Fault{File: fault.File, Line: fault.Line, Object: fault.Object, Reason: fault.Reason})
	}
	if len(result.Faults) == 0 {
		result.Error = err.Error()
	}
	return result
}
