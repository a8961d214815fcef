// SPDX-License-Identifier: Apache-2.0

// Package raw is the provisioner "raw.rukpak.io": content that is there to be read, such as disk images, policies, models or
// catalogs. Nothing of it is applied.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// one of those that implement provisioner.Render. What is approved is the digest of the content. An active revision keeps
// the content in the store, and says to those who read it by the content API which of several bundles they are to use.
//
// There are neither parameters nor configuration.
package raw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"rukpak.io/rukpak/provisioner"
)

// ID is the name of this provisioner.
const ID = "raw.rukpak.io"

// Provisioner renders nothing. It has no state.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "raw.rukpak.io".
func (*Provisioner) ID() string { return ID }

// Validate checks that there are no parameters and, unless content is nil, that there is a file.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, parameters json.RawMessage) error {
	if err := provisioner.TakesNone(ID, "parameters", parameters); err != nil || content == nil {
		return err
	}
	_, err := count(ctx, content)
	return err
}

// Render says that nothing is to be applied.
func (*Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	if err := errors.Join(provisioner.TakesNone(ID, "parameters", req.Parameters), provisioner.TakesNone(ID, "config", req.Config)); err != nil {
		return provisioner.Result{}, err
	}
	files, err := count(ctx, req.Content)
	if err != nil {
		return provisioner.Result{}, err
	}
	return provisioner.Result{Nothing: true, Notes: fmt.Sprintf("The content is there to be read, and nothing of it is applied. Files: %d.", files)}, nil
}

func count(ctx context.Context, content fs.FS) (files int, err error) {
	err = fs.WalkDir(content, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if !entry.IsDir() {
			files++
		}
		return ctx.Err()
	})
	if err == nil && files == 0 {
		return 0, &provisioner.InputError{Reason: "there is no file in it"}
	}
	return files, err
}
