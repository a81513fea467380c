package pawl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: what a job is made of, encoded and decoded by allocates as often as is stored.
func TestAllocations(t *testing.T) {
	e := acceptedLetter(t)
	record := pawl.AppendRecord(nil, e, 0)
	each := func(name string, op func() error) allowance {
		const ops = 1000
		return allowance{name: name, ops: ops, start: func(t *testing.T, count runCount) {
			count(func() {
				for range ops {
					if err := op(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}}
	}
	compareAllowances(t, []allowance{
		each("envelope", func() error { _, err := post.Envelope(aLetter); return err }),
		each("append-record", func() error { pawl.AppendRecord(nil, e, 0); return nil }),
		each("parse-record", func() error { _, _, err := pawl.ParseRecord(record); return err }),
		each("job", func() error { _, err := post.Job(e); return err }),
		each("new-id", func() error { pawl.NewID(postDay); return nil }),
	})
}

// Rule: every package compares its allocations in the same way.
func TestAllowancesAreAlike(t *testing.T) {
	behindPackage := func(folder string) string {
		text, err := os.ReadFile(filepath.Join(folder, "allowance_test.go"))
		require.NoError(t, err)
		_, text, _ = bytes.Cut(text, []byte("\n"))
		return string(text)
	}
	for _, folder := range []string{"bolt", "worker"} {
		require.Equal(t, behindPackage("."), behindPackage(folder), folder)
	}
}
