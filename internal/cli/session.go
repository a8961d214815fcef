// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/progress"
)

// session is one run of the program: its streams, its global flags and the
// cluster that they name. Verbs are methods of small types that hold one.
type session struct {
	genericiooptions.IOStreams
	program string // "rukpak", or "kubectl rukpak" when run as a plugin of kubectl
	flags   *genericclioptions.ConfigFlags
	colour  string // --color
	now     func() time.Time
	env     func(string) string

	cluster client.WithWatch // made by client
}

// scheme knows RukPak's kinds and those of Kubernetes.
func scheme() (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// client gives an uncached client that acts as the user.
func (s *session) client() (client.WithWatch, error) {
	if s.cluster != nil {
		return s.cluster, nil
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	known, err := scheme()
	if err != nil {
		return nil, err
	}
	s.cluster, err = client.NewWithWatch(config, client.Options{Scheme: known})
	return s.cluster, err
}

func (s *session) config() (*rest.Config, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "rukpak/" + clientVersion()
	config.QPS, config.Burst = 50, 100 // tree asks for many objects at once
	return config, nil
}

// namespace is that of -n, or of the context, or "default".
func (s *session) namespace() (string, error) {
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// place gives what nearly every verb needs first.
func (s *session) place() (client.WithWatch, string, error) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, "", err
	}
	cluster, err := s.client()
	return cluster, namespace, err
}

// say writes a line for people to standard error, where it disturbs no script.
func (s *session) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.ErrOut, format+"\n", args...)
}

// print writes a line of the result to standard output.
func (s *session) print(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...)
}

// painter colours what goes to standard output.
func (s *session) painter() paint.Painter {
	return paint.New(s.colour, isTerminal(s.Out), s.env)
}

// progress shows on standard error what is waited for.
func (s *session) progress() *progress.Line {
	return progress.New(s.ErrOut, terminalWidth(s.ErrOut), paint.New(s.colour, isTerminal(s.ErrOut), s.env))
}

// command is a command of this program to type next, in quotes, with the flags
// that name cluster and namespace as they were given now.
func (s *session) command(format string, args ...any) string {
	words := []string{s.program, fmt.Sprintf(format, args...)}
	for _, flag := range []struct {
		name  string
		value *string
	}{{"-n", s.flags.Namespace}, {"--context", s.flags.Context}, {"--kubeconfig", s.flags.KubeConfig}} {
		if set(flag.value) && !(flag.name == "-n" && strings.HasSuffix(words[1], " -A")) {
			words = append(words, flag.name+" "+*flag.value)
		}
	}
	return `"` + strings.Join(words, " ") + `"`
}

// canAsk says whether there is somebody to ask.
func (s *session) canAsk() bool { return isTerminal(s.In) }

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// terminalWidth is 0 for what is no terminal.
func terminalWidth(stream io.Writer) int {
	file, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}
