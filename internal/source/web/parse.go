// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"net/url"

	"rukpak.io/rukpak/internal/source"
)

// Parse takes the URL of a source. kind is how its errors, which are
// *source.Error, call the source.
func Parse(kind, text string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, invalid(kind, "", errors.New("the URL does not parse"))
	}
	u.Fragment, u.RawFragment = "", ""
	switch {
	case u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		err = errors.New("the URL must be like https://host/path")
	case u.User != nil:
		err = errors.New("the URL holds credentials; put them into a Secret and name it with secretRef")
	case u.Scheme == "http" && !insecure:
		err = errors.New("the URL is one of plain HTTP; set insecure to allow that")
	case u.Scheme != "http" && u.Scheme != "https":
		err = fmt.Errorf("the URL has the scheme %q; it must be https, or http with insecure", u.Scheme)
	}
	if err != nil {
		return nil, invalid(kind, Plain(u), err)
	}
	return u, nil
}

func invalid(kind, name string, err error) error {
	if name != "" {
		kind += " " + name
	}
	return &source.Error{Kind: source.Terminal, Reason: source.ReasonInvalidReference, Err: fmt.Errorf("%s: %w", kind, err)}
}

// Plain gives a URL without what may be secret: credentials and query.
func Plain(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return shown.String()
}
