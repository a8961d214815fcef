// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func answer(code int, text string, end error) *http.Response {
	body := io.Reader(strings.NewReader(text))
	if end != nil {
		body = io.MultiReader(body, failing{end})
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(body)}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestADownloadGoesOn(t *testing.T) {
	const whole = "0123456789"
	cut := errors.New("cut off")
	gone := apierrors.NewResourceExpired("gone")
	for name, test := range map[string]struct {
		begin func(try int, from int64) (*http.Response, error)
		want  string
		err   error
		tries int
	}{
		"whole": {func(int, int64) (*http.Response, error) { return answer(200, whole, nil), nil }, whole, nil, 1},
		"in pieces": {func(_ int, from int64) (*http.Response, error) {
			if from > 7 {
				return answer(206, whole[from:], nil), nil
			}
			return answer(206, whole[from:from+3], cut), nil
		}, whole, nil, 4},
		"an older manager, which knows no ranges": {func(try int, _ int64) (*http.Response, error) {
			if try == 1 {
				return answer(200, whole[:4], cut), nil
			}
			return answer(200, whole, nil), nil
		}, whole, nil, 2},
		"none goes on": {func(_ int, from int64) (*http.Response, error) {
			if from == 0 {
				return answer(200, whole[:4], cut), nil
			}
			return answer(206, "", cut), nil
		}, whole[:4], cut, 5},
		"the job is gone": {func(try int, _ int64) (*http.Response, error) {
			if try == 1 {
				return answer(200, whole[:4], cut), nil
			}
			return nil, gone
		}, whole[:4], gone, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			d := &download{ctx: t.Context(), begin: func(from int64) (*http.Response, error) { tries++; return test.begin(tries, from) }}
			got, err := io.ReadAll(d)
			if string(got) != test.want || !errors.Is(err, test.err) || tries != test.tries {
				t.Errorf("%q, %v after %d tries; want %q, %v after %d", got, err, tries, test.want, test.err, test.tries)
			}
		})
	}
}
