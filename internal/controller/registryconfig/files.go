// SPDX-License-Identifier: Apache-2.0

package registryconfig

import (
	"context"
	"reflect"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/internal/registry/convert"
	"rukpak.io/rukpak/internal/registry/rules"
)

// filesInterval is how often the files of the node are looked at. They come from
// a mounted volume, of which no event tells reliably.
const filesInterval = 15 * time.Second

// Files are registry configuration of the node that is mounted into the
// manager: what the objects override.
type Files struct {
	format   convert.Format
	path     string
	interval time.Duration
	changed  func()

	mu       sync.Mutex
	document *rules.Document
}

// OpenFiles reads "FORMAT=PATH", such as "containers=/etc/containers". Files that
// do not parse are an error: a manager that started without the mirrors in them
// would go where it must not.
func OpenFiles(ctx context.Context, place string) (*Files, error) {
	format, path, err := convert.ParsePlace(place)
	if err != nil {
		return nil, err
	}
	document, err := convert.Read(ctx, format, path)
	if err != nil {
		return nil, err
	}
	f := &Files{format: format, path: path, interval: filesInterval, document: document, changed: func() {}}
	f.tell(ctx, document)
	return f, nil
}

// Document is what the files say, or said when they parsed the last time.
func (f *Files) Document() *rules.Document {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.document
}

// Start looks at the files until ctx ends. Files that no longer parse change
// nothing: what they said before stays in force.
func (f *Files) Start(ctx context.Context) error {
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	complained := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		document, err := convert.Read(ctx, f.format, f.path)
		if err != nil {
			if err.Error() != complained {
				log.FromContext(ctx).Error(err, "the registry configuration of the node does not parse; what it said before stays in force", "path", f.path)
			}
			complained = err.Error()
			continue
		}
		complained = ""
		if f.replace(document) {
			f.tell(ctx, document)
			f.changed()
		}
	}
}

func (f *Files) replace(document *rules.Document) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reflect.DeepEqual(f.document, document) {
		return false
	}
	f.document = document
	return true
}

// tell logs what is left out, so that nothing is left out in silence.
func (f *Files) tell(ctx context.Context, document *rules.Document) {
	logger := log.FromContext(ctx).WithName("registryconfig")
	logger.Info("the registry configuration of the node is read", "format", f.format, "path", f.path, "rules", len(document.Rules), "credentials", len(document.Logins))
	for _, note := range document.Notes {
		logger.Info("the registry configuration of the node: "+note.What, "where", note.Where)
	}
	for _, helper := range document.Helpers {
		logger.Info("a credential helper is not run by the manager", "helper", helper.Name, "host", helper.Host, "where", helper.From)
	}
}
