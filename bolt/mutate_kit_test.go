package bolt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ride is a mutation made of functions. It counts its calls. Read the counts once Mutate has
// returned.
type ride struct {
	check           func(*ops) error // nil allows
	apply           func(*bbolt.Tx) error
	checks, applied int
}

func (r *ride) Check(o driver.Ops) error {
	r.checks++
	if r.check == nil {
		return nil
	}
	return r.check(o.(*ops))
}

func (r *ride) Apply(w driver.Writer) error {
	r.applied++
	if r.apply == nil {
		return nil
	}
	return r.apply(w.(*tables).tx)
}

// txOf returns the transaction of a mutation.
func txOf(o *ops) *bbolt.Tx { return o.t.jobs.Tx() }

// riding is a mutation with an operation on a job and its own row.
func riding(row string, plan func(*ops) error) *ride {
	return &ride{check: plan, apply: func(tx *bbolt.Tx) error { return appPut(tx, row) }}
}

// refusing is a mutation that fails at the end of one half.
func refusing(half string, r *ride, refusal error) *ride {
	check, apply := r.check, r.apply
	if half == "Check" {
		r.check = func(p *ops) error {
			if err := check(p); err != nil {
				return err
			}
			return refusal
		}
	} else {
		r.apply = func(tx *bbolt.Tx) error {
			if err := apply(tx); err != nil {
				return err
			}
			return refusal
		}
	}
	return r
}

// stand is a set of jobs for verbs: one in each state but ready and completed.
type stand struct {
	lease                *pawl.Lease
	delayed, later, dead pawl.ID
}

// atFirst are the counts of a new stand.
var atFirst = pawl.Counts{Delayed: 2, Leased: 1, Dead: 1}

func newStand(t *testing.T, q *Queue) (s stand) {
	t.Helper()
	s.dead = add(t, q, nil).ID
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	s.later = add(t, q, func(e *pawl.Envelope) { e.Delay = 1000 * time.Hour }).ID
	s.delayed = add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour }).ID
	add(t, q, nil)
	s.lease = leaseOne(t, q)
	require.Equal(t, atFirst, countsOf(t, q, pawl.DefaultQueue))
	return s
}
