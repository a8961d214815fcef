// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/provisioners/helm"
	"rukpak.io/rukpak/internal/sandbox"
	"rukpak.io/rukpak/provisioner"
)

const (
	// instancesVerb makes this program render one chart for many instances and tell about it.
	instancesVerb  = "instances-in-child"
	instancesChart = "podinfo/6.11.2"
	renderCores    = 2
	lookEvery      = 50 * time.Millisecond
)

// manyInstances renders one chart with other values for each instance: in processes of their own, as the manager has it, and
// beside that within the process.
func manyInstances(ctx context.Context, b *bench) (rows []Row, err error) {
	count := b.scaled(500)
	dir, missing := sharedData("helm/" + instancesChart)
	for _, way := range []struct {
		name          string
		renders, most *Target
	}{
		{"in processes of their own", atLeast(20), below(400)},
		{"in process", nil, nil},
	} {
		scene := fmt.Sprintf("%d instances of podinfo, %d cores, %s: ", count, renderCores, way.name)
		speed := Row{What: scene + "renders", Unit: "a second", Target: way.renders, Skipped: missing}
		most := Row{What: scene + "peak of memory of all processes", Unit: "MiB", Target: way.most, Skipped: missing}
		if missing == "" {
			done, err := renderInChild(ctx, way.renders != nil, dir, count)
			if err != nil {
				return rows, err
			}
			speed.Measured, most.Measured = float64(count)/done.Seconds, done.PeakMiB
			most.Details = map[string]any{"processes": done.Processes, "beforeMiB": done.BeforeMiB}
		}
		rows = append(rows, speed, most)
	}
	return rows, nil
}

// renderings is what a child tells.
type renderings struct {
	Seconds   float64
	BeforeMiB float64 // of the process, with nothing rendered
	PeakMiB   float64 // of the process and its children, at the same time
	Processes int     // at that time
}

func renderInChild(ctx context.Context, apart bool, dir string, count int) (done renderings, err error) {
	command := exec.CommandContext(ctx, "/proc/self/exe", instancesVerb, strconv.FormatBool(apart), dir, strconv.Itoa(count))
	command.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", renderCores))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return done, err
	}
	return done, json.Unmarshal(out, &done)
}

// instancesChild renders: args are whether in processes of their own, the folder of the chart, and how many.
func instancesChild(args []string) int {
	done, err := renderAll(args)
	return tell(done, err)
}

func renderAll(args []string) (done renderings, err error) {
	if len(args) != 3 {
		return done, fmt.Errorf("want true or false, a folder and a number, have %q", args)
	}
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return done, err
	}
	var renderer provisioner.Provisioner = helm.New()
	if args[0] == "true" {
		pool := sandbox.New(sandbox.Options{Processes: renderCores})
		defer pool.Close()
		renderer = pool.Wrap(renderer)
	}
	if done.BeforeMiB, err = processMemory(os.Getpid(), "VmRSS"); err != nil {
		return done, err
	}
	content := os.DirFS(args[1])
	var works []func(context.Context) error
	for number := range count {
		works = append(works, func(ctx context.Context) error {
			req := requestFor(content, json.RawMessage(fmt.Sprintf(`{"replicaCount": %d}`, number)))
			req.Instance.Name = fmt.Sprintf("web-%d", number)
			result, err := renderer.Render(ctx, req)
			if err != nil {
				return err
			}
			return replicasAre(result, int64(number))
		})
	}
	stop := done.watch()
	begun := time.Now()
	err = inParallel(context.Background(), renderCores, works)
	done.Seconds = time.Since(begun).Seconds()
	stop()
	return done, err
}

// replicasAre makes sure that each instance gets its own values.
func replicasAre(result provisioner.Result, want int64) error {
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			if object.GetKind() != "Deployment" {
				continue
			}
			got, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
			if err == nil && got != want {
				err = fmt.Errorf("%s has %d replicas, want %d", provisioner.Describe(object.Object), got, want)
			}
			return err
		}
	}
	return fmt.Errorf("no Deployment is rendered for %d replicas", want)
}

// watch looks at the memory until it is stopped.
func (r *renderings) watch() (stop func()) {
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			if used, processes := familyMemory(); used > r.PeakMiB {
				r.PeakMiB, r.Processes = used, processes
			}
			select {
			case <-end:
				return
			case <-ticker.C:
			}
		}
	})
	return func() { close(end); group.Wait() }
}

// familyMemory is what this process and its children have in memory, in MiB. What they share, such as the text of the
// program, is counted for each.
func familyMemory() (total float64, processes int) {
	self := os.Getpid()
	family := []int{self}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if parent, _ := strconv.Atoi(strings.TrimSpace(field(dir+"/status", "PPid"))); parent == self {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			family = append(family, pid)
		}
	}
	for _, pid := range family {
		if used, err := processMemory(pid, "VmRSS"); err == nil { // one may have ended
			total, processes = total+used, processes+1
		}
	}
	return total, processes
}
