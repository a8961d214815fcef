// SPDX-License-Identifier: Apache-2.0

// Command bench measures RukPak against the figures that it promises: on a real
// control plane of this machine, and side by side with what it is compared
// with, in the same run. `make bench` runs it; docs/benchmarks.md says what each
// figure measures. It stands beside the way that content takes, and looks at it
// from outside: through the API server, its metrics, and /proc.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/internal/sandbox"
	"rukpak.io/rukpak/internal/wire"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case childVerb:
			return child(os.Args[2:])
		case instancesVerb:
			return instancesChild(os.Args[2:])
		case sandbox.Argument:
			return wire.Render()
		}
	}
	b := &bench{started: time.Now()}
	b.flags(flag.CommandLine)
	flag.Parse()
	chosen, err := choose(b.only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench:", err, strings.Join(flag.Args(), " "))
		return 2
	}
	ctrllog.SetLogger(logr.Discard()) // of the libraries; what matters they return as errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report := b.measure(ctx, chosen)
	if err := b.publish(report); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return report.exitCode(b.strict)
}

// bench is one run: what was asked for, and what the figures share.
type bench struct {
	only, out, markdown string
	strict              bool
	rounds              int
	scale               float64
	settle, window      time.Duration
	started             time.Time
	stage               *stage // started by the first figure that needs it
}

func (b *bench) flags(f *flag.FlagSet) {
	f.StringVar(&b.only, "only", "", "figures to measure, separated by commas; all if empty: "+strings.Join(figureNames(), ","))
	f.StringVar(&b.out, "out", "bench.json", "file that the report is written to, as JSON; none if empty")
	f.StringVar(&b.markdown, "markdown", "", "file that the table is written to, as Markdown; none if empty")
	f.BoolVar(&b.strict, "strict", false, "exit with 1 if a target is missed")
	f.IntVar(&b.rounds, "rounds", 5, "rounds of what is compared; the median counts")
	f.Float64Var(&b.scale, "scale", 1, "multiplies all numbers of objects and instances, and the size of the image; targets are meant for 1")
	f.DurationVar(&b.settle, "settle", 20*time.Second, "time between the last instance's being ready and the measurement at rest")
	f.DurationVar(&b.window, "window", time.Minute, "time for which the manager is watched at rest")
}

// scaled is n as the scale has it, at least 1.
func (b *bench) scaled(n int) int { return max(1, int(float64(n)*b.scale)) }

// say tells what goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%6.1fs] "+format+"\n", append([]any{time.Since(b.started).Seconds()}, args...)...)
}

// measure goes through the figures. One that cannot be measured does not keep the others from it.
func (b *bench) measure(ctx context.Context, chosen []figure) *Report {
	report := newReport(b)
	defer func() {
		if err := b.stage.stop(); err != nil {
			b.say("end of the environment: %v", err)
		}
	}()
	for _, f := range chosen {
		b.say("== %s: %s", f.name, f.about)
		begun := time.Now()
		rows, err := f.measure(ctx, b)
		for i := range rows {
			rows[i].judge(f.name)
			b.say("%s", rows[i].line())
		}
		report.Rows = append(report.Rows, rows...)
		if err != nil {
			b.say("%s could not be measured: %v", f.name, err)
			report.Errors = append(report.Errors, f.name+": "+err.Error())
		}
		b.say("   %s took %.0f s", f.name, time.Since(begun).Seconds())
	}
	report.Seconds = time.Since(b.started).Seconds()
	return report
}
