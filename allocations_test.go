package pawl_test

import (
	"testing"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/allowance"
)

// Rule: what a job is made of, encoded and decoded by allocates as often as is stored.
func TestAllocations(t *testing.T) {
	e := acceptedInvite(t)
	record := driver.AppendRecord(nil, e, 0)
	each := func(name string, op func() error) allowance.Operation {
		const ops = 1000
		return allowance.Operation{Name: name, Ops: ops, Start: func(t *testing.T, count allowance.RunCount) {
			count(func() {
				for range ops {
					if err := op(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}}
	}
	allowance.Compare(t, []allowance.Operation{
		each("envelope", func() error { _, err := post.Envelope(anInvite); return err }),
		each("append-record", func() error { driver.AppendRecord(nil, e, 0); return nil }),
		each("parse-record", func() error { _, _, err := driver.ParseRecord(record); return err }),
		each("job", func() error { _, err := post.Job(e); return err }),
		each("new-id", func() error { pawl.NewID(postDay); return nil }),
	})
}
