// SPDX-License-Identifier: Apache-2.0

package unpack

import "io"

// Arriving counts a layer while its packed bytes come, for layers of which
// nobody said the size beforehand. announced is what their sender says now, or
// less than zero. The reader gives a *LimitError before or as soon as they are
// too many.
func (b *Budget) Arriving(r io.Reader, announced int64) io.Reader {
	return &arriving{r: r, budget: b, announced: announced}
}

type arriving struct {
	r         io.Reader
	budget    *Budget
	announced int64
	begun     bool
}

func (a *arriving) Read(p []byte) (int, error) {
	if err := a.begin(); err != nil {
		return 0, err
	}
	n, err := a.r.Read(p)
	if over := a.budget.limits.check(limitCompressed, a.budget.compressed.Add(int64(n))); over != nil {
		return 0, over
	}
	return n, err
}

func (a *arriving) begin() error {
	if a.begun {
		return nil
	}
	a.begun = true
	if err := a.budget.Compressed(0); err != nil {
		return err
	}
	return a.budget.limits.check(limitCompressed, a.budget.compressed.Load()+max(0, a.announced))
}
