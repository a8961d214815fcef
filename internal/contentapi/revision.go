// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/provisioner"
)

// manifests answers with the objects of a revision, without the data of Secrets.
func (c *call) manifests() error { return c.objects(false) }

// secretManifests answers with all of them, as they would be applied.
func (c *call) secretManifests() error { return c.objects(true) }

func checkFormat(format string, secrets bool) error {
	switch {
	case format == "", format == "json", format == "yaml", format == "stored" && secrets:
		return nil
	case format == "stored":
		return apierrors.NewBadRequest("format=stored gives the very bytes that were approved, Secrets and all: only secretmanifests has it")
	}
	return apierrors.NewBadRequest(fmt.Sprintf("format=%q is none; there are json, yaml and, of secretmanifests, stored", format))
}

func (c *call) objects(secrets bool) error {
	format := c.r.URL.Query().Get("format")
	if err := checkFormat(format, secrets); err != nil {
		return err
	}
	revision, err := c.revision()
	if err != nil {
		return err
	}
	if c.unchanged(fmt.Sprintf(`"%s %s %t"`, revision.Spec.ManifestDigest, format, secrets)) {
		return nil
	}
	release, err := c.hold()
	if err != nil {
		return err
	}
	defer release()
	encoded, err := manifest.LoadVerified(c.r.Context(), c.server.Live, revision.Namespace, revision.Name, digest.Digest(revision.Spec.ManifestDigest))
	if err != nil {
		return c.notKept(revision, "manifests", err)
	}
	if format == "stored" {
		return c.send("application/json", encoded)
	}
	set, err := manifest.Decode(encoded)
	if err != nil {
		return err
	}
	objects := []map[string]any{}
	var notes []string // of each object
	var tasks []contentv1.Task
	for _, phase := range set.Phases {
		for _, object := range phase.Objects {
			if !secrets {
				object = plan.Redact(object)
			}
			if moments := momentsOf(phase); len(moments) > 0 {
				tasks = append(tasks, contentv1.Task{Item: len(objects), Phase: phase.Name, On: moments})
			}
			objects, notes = append(objects, object.Object), append(notes, taskNote(phase))
		}
	}
	if format == "yaml" {
		return c.sendYAML(objects, notes)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
	if len(tasks) > 0 {
		list["tasks"] = tasks
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return c.send("application/json", append(text, '\n'))
}

// taskNote says of the objects of a phase that they are tasks, and when they run; "" for state.
func taskNote(phase provisioner.Phase) string {
	if len(phase.On) == 0 {
		return ""
	}
	return fmt.Sprintf("# A task of phase %q, run at %s.\n", phase.Name, strings.Join(momentsOf(phase), ", "))
}

func momentsOf(phase provisioner.Phase) (moments []string) {
	for _, moment := range phase.On {
		moments = append(moments, string(moment))
	}
	return moments
}

func (c *call) sendYAML(objects []map[string]any, notes []string) error {
	var out bytes.Buffer
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		out.WriteString("---\n" + notes[i])
		out.Write(text)
	}
	return c.send("application/yaml", out.Bytes())
}

// diff answers with the plan of a revision, which holds no data of Secrets.
func (c *call) diff() error {
	format := c.r.URL.Query().Get("format")
	if format != "" && format != "json" && format != "text" {
		return apierrors.NewBadRequest(fmt.Sprintf("format=%q is none; there are json and text", format))
	}
	revision, err := c.revision()
	if err != nil {
		return err
	}
	release, err := c.hold()
	if err != nil {
		return err
	}
	defer release()
	encoded, err := manifest.Load(c.r.Context(), c.server.Live, revision.Namespace, revision.Name, manifest.KindPlan)
	if err != nil {
		return c.notKept(revision, "plan", err)
	}
	if format != "text" {
		return c.send("application/json", encoded)
	}
	computed, err := plan.Decode(encoded)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := plan.Render(&out, computed, plan.RenderOptions{Width: 1 << 16}); err != nil {
		return err
	}
	return c.send("text/plain; charset=utf-8", out.Bytes())
}

func (c *call) revision() (*v1alpha1.InstanceRevision, error) {
	revision := &v1alpha1.InstanceRevision{}
	err := c.server.Client.Get(c.r.Context(), types.NamespacedName{Namespace: c.info.Namespace, Name: c.info.Name}, revision)
	return revision, c.absent("InstanceRevision", err)
}

// hold bounds what is in memory at a time.
func (c *call) hold() (release func(), err error) {
	select {
	case c.server.heavy <- struct{}{}:
		return func() { <-c.server.heavy }, nil
	case <-c.r.Context().Done():
		return nil, c.r.Context().Err()
	}
}

// notKept says what is missing beside a revision.
func (c *call) notKept(revision *v1alpha1.InstanceRevision, what string, err error) error {
	if errors.Is(err, manifest.ErrIncomplete) {
		return notFound("InstanceRevision %s/%s has no %s: it is not rendered and planned yet, or no longer kept: %v", revision.Namespace, revision.Name, what, err)
	}
	return err
}

func (c *call) send(mediaType string, body []byte) error {
	c.w.Header().Set("Content-Type", mediaType)
	guard(c.w.Header())
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	_, err := c.w.Write(body)
	return err
}
