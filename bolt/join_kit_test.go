package bolt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// ride is a rider of functions, which counts how often it is asked. The counts are read
// once Join has returned.
type ride struct {
	check           func(*Plan) error // nil allows
	apply           func(*bbolt.Tx) error
	checks, applied int
}

func (r *ride) Check(p *Plan) error {
	r.checks++
	if r.check == nil {
		return nil
	}
	return r.check(p)
}

func (r *ride) Apply(tx *bbolt.Tx) error {
	r.applied++
	if r.apply == nil {
		return nil
	}
	return r.apply(tx)
}

// riding is a rider that plans a verb and writes a row of the app's.
func riding(row string, plan func(*Plan) error) *ride {
	return &ride{check: plan, apply: func(tx *bbolt.Tx) error { return appPut(tx, row) }}
}

// refusing is a rider that gives up at the end of the half named.
func refusing(half string, r *ride, refusal error) *ride {
	check, apply := r.check, r.apply
	if half == "Check" {
		r.check = func(p *Plan) error {
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

// stand is what there is for verbs: one job in each state but ready and completed.
type stand struct {
	lease                *pawl.Lease
	delayed, later, dead pawl.ID
}

// atFirst are the counts of a stand.
var atFirst = pawl.Counts{Delayed: 2, Leased: 1, Dead: 1}

func newStand(t *testing.T, q *Queue) (s stand) {
	t.Helper()
	s.dead = add(t, q, nil).ID
	require.NoError(t, q.Abandon(t.Context(), leaseOne(t, q), pawl.ReasonPermanent, errBoom))
	s.later = add(t, q, func(e *pawl.Envelope) { e.Delay = 1000 * time.Hour }).ID
	s.delayed = add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour }).ID
	add(t, q, nil)
	s.lease = leaseOne(t, q)
	require.Equal(t, atFirst, countsOf(t, q, pawl.DefaultQueue))
	return s
}
