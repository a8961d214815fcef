// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source/upload"
	"rukpak.io/rukpak/internal/unpack"
)

// upload takes a tar archive and keeps its files until a Bundle names them.
func (c *call) upload() error {
	session, err := c.server.Contents.Begin()
	if err != nil {
		return err
	}
	defer session.Close()
	kind := c.r.Header.Get("Content-Type")
	kept, err := upload.Keep(c.r.Context(), session, unpack.NewBudget(c.server.Limits), upload.Archive{
		Namespace: c.info.Namespace, MediaType: kind, Body: c.r.Body, Size: c.r.ContentLength,
	})
	if err != nil {
		return refusal(err)
	}
	writeJSON(c.w, http.StatusCreated, contentv1.Upload{
		TypeMeta: metav1.TypeMeta{Kind: "Upload", APIVersion: contentv1.GroupVersion.String()},
		Digest:   string(kept.Digest), Files: int64(kept.Files), Bytes: kept.Bytes,
	})
	return nil
}

// refusal says whose fault it is that an upload was not taken.
func refusal(err error) error {
	if limit, ok := errors.AsType[*unpack.LimitError](err); ok {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
			Message: fmt.Sprintf("the upload is too large: %v", limit),
		}}
	}
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the upload is not taken: %v", err))
}
