// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/content/folder"
)

// contentClient reads the content API as the user, by way of the API server. It
// comes again by itself when content is being fetched.
type contentClient struct {
	*session
	api       rest.Interface
	namespace string
}

func (s *session) contentAPI() (*contentClient, error) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, err
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.GroupVersion = &contentv1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	return &contentClient{session: s, api: api, namespace: namespace}, err
}

// query are the parameters of a request.
type query map[string]string

// get opens what the content API has of an object: path is "files", or
// "files/deploy/app.yaml".
func (c *contentClient) get(ctx context.Context, resource, name, path string, parameters query) (io.ReadCloser, error) {
	request := c.api.Get().Namespace(c.namespace).Resource(resource).Name(name).Suffix(strings.Split(path, "/")...)
	for key, value := range parameters {
		if value != "" {
			request = request.Param(key, value)
		}
	}
	body, err := request.Stream(ctx)
	return body, c.explainContent(err)
}

// files lists what a bundle holds, or a folder of it.
func (c *contentClient) files(ctx context.Context, bundle, path string, recursive bool) (*contentv1.FileList, error) {
	parameters := query{"recursive": "true", "only": "folder"}
	if !recursive {
		parameters["recursive"] = "false"
	}
	body, err := c.get(ctx, contentv1.ResourceBundles, bundle, strings.TrimSuffix("files/"+path, "/"), parameters)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	list := &contentv1.FileList{}
	if err := json.NewDecoder(body).Decode(list); err != nil {
		return nil, failf(ExitError, "the list of the files of bundle %s broke off: %w", bundle, err)
	}
	return list, nil
}

// upload brings a folder to the cluster.
func (c *contentClient) upload(ctx context.Context, dir string) (*contentv1.Upload, error) {
	reader, writer := io.Pipe()
	go func() {
		packed, err := zstd.NewWriter(writer)
		if err == nil {
			_, err = folder.Pack(ctx, os.DirFS(dir), packed)
			err = errors.Join(err, packed.Close())
		}
		_ = writer.CloseWithError(err) // nil is the end
	}()
	defer reader.Close() //nolint:errcheck // ends the packing if nobody reads any more
	result := c.api.Post().Namespace(c.namespace).Resource(contentv1.ResourceUploads).
		SetHeader("Content-Type", "application/zstd").Body(reader).Do(ctx)
	if err := result.Error(); err != nil { // which Raw does not read out of the answer
		return nil, c.explainContent(err)
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	done := &contentv1.Upload{}
	return done, json.Unmarshal(raw, done)
}

// explainContent says what the errors of the content API mean.
func (c *contentClient) explainContent(err error) error {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) {
		return err
	}
	switch {
	case apierrors.IsNotFound(err) && unexpected(status.Status()):
		return failf(ExitError, "the cluster at %s does not serve %s, the content API", c.server(), contentv1.GroupVersion).
			hintf("install it with \"kubectl apply -k config/contentapi\", and let the manager run")
	case apierrors.IsServiceUnavailable(err):
		return failf(ExitError, "the content API does not answer, or not yet: %w", err).
			hintf("\"kubectl get apiservice v1alpha1.content.rukpak.io\" says whether it is there")
	case apierrors.IsConflict(err) && status.Status().Details != nil:
		_, why, _ := strings.Cut(err.Error(), "\": ") // what stands before is of writes that meet
		name := status.Status().Details.Name
		return failf(ExitFailed, "bundle %s: %s", name, why).hintf("%s tells more", c.command("describe bundle %s", name))
	case apierrors.IsRequestEntityTooLargeError(err), apierrors.IsTimeout(err):
		return failf(ExitError, "%w", err).hintf("what is large is better pushed to a registry")
	}
	return err
}

// unexpected says that it was not the content API that answered.
func unexpected(status metav1.Status) bool {
	if status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// bundleWord is the name in "web" or "bundle/web".
func bundleWord(word string) (string, error) {
	known, name, prefixed := splitName(word)
	if prefixed && known.name != "bundle" {
		return "", failf(ExitUsage, "%s is not a bundle", word).hintf("an instance's bundle is listed by \"rukpak describe\"")
	}
	return name, nil
}
