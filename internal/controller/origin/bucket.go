// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/bucket"
	"rukpak.io/rukpak/internal/source/web"
)

// Keys of a Secret for a bucket, beside those of TLS.
const (
	keyAccess  = "accessKey"
	keySecret  = "secretKey"
	keySession = "sessionToken"
)

func (o *Opener) bucket(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	from := spec.Bucket
	src := bucket.Source{
		Endpoint: strings.TrimRight(from.Endpoint, "/"), Bucket: from.Bucket, Prefix: from.Prefix,
		Object: from.Object, VersionID: from.VersionID, Region: from.Region, Insecure: from.Insecure,
		Form: web.Form{MediaType: from.MediaType, Whole: from.Archive == v1alpha1.ArchiveNever, Below: from.SubPath},
	}
	if from.SecretRef == nil {
		return confine(o.Bucket.At(src), at, "bucket", src.Endpoint, src.Bucket), nil
	}
	secret, err := o.namedSecret(ctx, from.SecretRef.Name, at)
	if err != nil {
		return nil, err
	}
	if err := bucketKeys(secret, &src); err != nil {
		return nil, &SecretError{fmt.Sprintf("%s: Secret %q in namespace %q: %v", at.Field, from.SecretRef.Name, at.Namespace, err)}
	}
	return confine(o.Bucket.At(src), at, "bucket", src.Endpoint, src.Bucket, from.SecretRef.Name), nil
}

// bucketKeys reads what a Secret has for a bucket. A key that means nothing is
// an error.
func bucketKeys(secret *corev1.Secret, src *bucket.Source) error {
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		value := secret.Data[key]
		text := strings.TrimRight(string(value), "\r\n") // what editors and echo add
		switch key {
		case keyAccess:
			src.AccessKey = text
		case keySecret:
			src.SecretKey = text
		case keySession:
			src.SessionToken = text
		case keyCA:
			src.TLS.CA = value
		case corev1.TLSCertKey:
			src.TLS.Certificate = value
		case corev1.TLSPrivateKeyKey:
			src.TLS.Key = value
		default:
			return fmt.Errorf("key %q means nothing; known are accessKey, secretKey, sessionToken, ca.crt, tls.crt and tls.key", key)
		}
	}
	if (src.AccessKey == "") != (src.SecretKey == "") || src.SessionToken != "" && src.AccessKey == "" {
		return errors.New("accessKey and secretKey belong together")
	}
	if strings.ContainsFunc(src.AccessKey+src.SessionToken, func(c rune) bool { return c < 0x21 || c > 0x7e }) {
		return errors.New("accessKey or sessionToken holds spaces or line breaks")
	}
	_, err := src.TLS.Config()
	return err
}
