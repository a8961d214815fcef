// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/provisioners/helm"
	"rukpak.io/rukpak/internal/provisioners/kustomize"
	"rukpak.io/rukpak/internal/testenv/rendered"
	"rukpak.io/rukpak/provisioner"
)

// How often is rendered for each round of other figures. Most takes some milliseconds: many short rounds are needed for both
// sides to see the same machine, and several renderings in each for the collector to come to both.
const (
	renderRounds     = 40
	renderRoundsSlow = 5
	renderTimes      = 3    // in one round; 1 of what is slow
	slow             = 50.0 // ms
)

var benchCharts = []string{"podinfo/6.11.2", "ingress-nginx/4.15.1", "alertmanager/head"}

// rendering compares the provisioners, from files to objects in phases, with what the commands of Helm and Kustomize do, from
// the same files to text. The objects have to be the same.
func rendering(ctx context.Context, b *bench) (rows []Row, err error) {
	for _, chart := range benchCharts {
		row, err := b.against(charts(ctx, chart))
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	for _, tree := range slices.Sorted(maps.Keys(rendered.KustomizeFolders)) {
		row, err := b.against(trees(ctx, tree))
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// rivalry is one thing that two render.
type rivalry struct {
	what, with, missing string
	ours, theirs        func() error
	compare             func() (difference string, err error)
}

func (b *bench) against(r rivalry) (Row, error) {
	if r.missing != "" {
		return Row{What: r.what, ComparedWith: r.with, Target: atMost(1.1), Skipped: r.missing}, nil
	}
	difference, err := r.compare() // it also warms up both
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", r.what, err)
	}
	rounds, err := b.turns(r)
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", r.what, err)
	}
	row := compared(r.what, "ms", r.with, atMost(1.1), rounds)
	if difference != "" {
		row.Fault, row.Details = "the objects differ", map[string]any{"difference": difference}
	}
	return row, nil
}

// turns measures both sides. What the libraries say on the way, both do.
func (b *bench) turns(r rivalry) (rounds []Round, err error) {
	said := os.Stderr
	defer func() { os.Stderr = said }()
	if os.Stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	defer func(silent *os.File) { _ = silent.Close() }(os.Stderr)
	count, times := b.rounds*renderRounds, renderTimes
	if once, err := took(r.theirs, 1); err != nil {
		return nil, err
	} else if once > slow {
		count, times = b.rounds*renderRoundsSlow, 1
	}
	return sides(count,
		func(int) (float64, error) { return took(r.ours, times) },
		func(int) (float64, error) { return took(r.theirs, times) },
		func(int, Round) {})
}

// took is the milliseconds that work takes once.
func took(work func() error, times int) (float64, error) {
	begun := time.Now()
	for range times {
		if err := work(); err != nil {
			return 0, err
		}
	}
	return time.Since(begun).Seconds() * 1000 / float64(times), nil
}

func charts(ctx context.Context, name string) rivalry {
	dir, missing := sharedData("helm/" + name)
	req := requestFor(os.DirFS(dir), json.RawMessage("{}"))
	return rivalry{
		what: "chart " + name, with: "helm template, as library", missing: missing,
		ours:   func() error { _, err := helm.New().Render(ctx, req); return err },
		theirs: func() error { _, err := rendered.Helm(dir, map[string]any{}, false); return err },
		compare: func() (string, error) {
			result, err := helm.New().Render(ctx, req)
			if err != nil {
				return "", err
			}
			made, err := rendered.Helm(dir, map[string]any{}, false)
			if err != nil {
				return "", err
			}
			want, err := rendered.OfHelm(made)
			if err != nil {
				return "", err
			}
			return differs(want, result)
		},
	}
}

func requestFor(content fs.FS, config json.RawMessage) provisioner.Request {
	return provisioner.Request{
		Instance: types.NamespacedName{Namespace: rendered.Namespace, Name: rendered.ReleaseName}, Content: content,
		Config: config, Revision: 1, Cluster: provisioner.Cluster{Version: rendered.KubeVersion},
	}
}

func differs(want []string, result provisioner.Result) (string, error) {
	got, err := rendered.Ours(result)
	if len(want) == 0 {
		return "", fmt.Errorf("nothing is rendered, so that nothing is compared")
	}
	return rendered.Differences(want, got), err
}

// trees are the folders of a tree that can be built, one after the other.
func trees(ctx context.Context, name string) rivalry {
	dir, missing := sharedData("kustomize/" + name)
	content := os.DirFS(dir)
	var folders []string
	for _, folder := range slices.Sorted(maps.Keys(rendered.KustomizeFolders[name])) {
		folders = append(folders, rendered.FolderIn(content, folder))
	}
	made := kustomize.New()
	ours := func(folder string) (provisioner.Result, error) {
		config, err := json.Marshal(kustomize.Config{Path: folder})
		if err != nil {
			return provisioner.Result{}, err
		}
		return made.Render(ctx, requestFor(content, config))
	}
	return rivalry{
		what: fmt.Sprintf("tree %s, %d Kustomizations", name, len(folders)), with: "kustomize build, as library", missing: missing,
		ours: func() error {
			return each(folders, func(folder string) error { _, err := ours(folder); return err })
		},
		theirs: func() error {
			return each(folders, func(folder string) error { return builtAsText(filepath.Join(dir, folder)) })
		},
		compare: func() (difference string, err error) {
			err = each(folders, func(folder string) error {
				result, err := ours(folder)
				if err != nil {
					return err
				}
				built, err := rendered.Kustomize(filepath.Join(dir, folder))
				if err != nil {
					return err
				}
				want, err := rendered.OfKustomize(built)
				if err != nil {
					return err
				}
				found, err := differs(want, result)
				difference += found
				return err
			})
			return difference, err
		},
	}
}

func each(all []string, work func(string) error) error {
	for _, one := range all {
		if err := work(one); err != nil {
			return fmt.Errorf("%s: %w", one, err)
		}
	}
	return nil
}

// builtAsText ends with the YAML that the command prints.
func builtAsText(dir string) error {
	built, err := rendered.Kustomize(dir)
	if err != nil {
		return err
	}
	_, err = built.AsYaml()
	return err
}
