package kills

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/group"
)

// groupName is the name of the group in these tests.
const groupName = "g"

// settleMembers settles members of a group from several goroutines. Some add a late member, and some are
// abandoned while none of their first run is left.
func settleMembers(ctx context.Context, q Queue) error {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				leases, err := q.Fetch(ctx, pawl.Request{Max: 50, Wait: pawl.WaitDrained})
				if errors.Is(err, pawl.ErrEmpty) {
					return
				}
				if err != nil {
					panic(err)
				}
				var late []*pawl.Envelope
				var each []pawl.Settlement
				for _, l := range leases {
					switch {
					case l.Kind == "splits":
						late = append(late, &pawl.Envelope{Kind: "k", Group: groupName})
						each = append(each, l.Ack())
					case l.Kind == "fails" && l.Failures == 0:
						each = append(each, l.Abandon(pawl.ReasonPermanent, errors.New("no")))
					default:
						each = append(each, l.Ack())
					}
				}
				if _, err := q.Enqueue(ctx, late...); err != nil {
					panic(err)
				}
				if err := q.Settle(ctx, each...); err != nil {
					panic(err)
				}
			}
		})
	}
	all.Wait()
	Say("drained")
	return nil
}

// Callbacks counts the callbacks of a group of [MakeGroup] that are there.
func Callbacks(t *testing.T, q dlq.Store) (done, success int) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{Queue: "callbacks"}) {
		require.NoError(t, err)
		switch e.Kind {
		case "done":
			done++
		case "success":
			success++
		}
	}
	return done, success
}

// MakeGroup makes the group "g" with callbacks and some members.
func MakeGroup(t *testing.T, q interface {
	group.Queue
	pawl.Enqueuer
}, kinds ...string) {
	t.Helper()
	require.NoError(t, group.Make(t.Context(), q, group.Group{
		Name: groupName, Done: &pawl.Envelope{Kind: "done", Queue: "callbacks"}, Success: &pawl.Envelope{Kind: "success", Queue: "callbacks"},
	}))
	jobs := make([]*pawl.Envelope, len(kinds))
	for i, kind := range kinds {
		jobs[i] = &pawl.Envelope{Kind: kind, Group: groupName}
	}
	_, err := q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
}

// Group guards the rule: whenever the process is killed, the counts of a group equal a walk over the jobs, and each
// callback is there once, from the commit of the last end on.
func (e Engine) Group(t *testing.T) {
	groups, killed := 0, 0
	for atLeast := Count(t, 1); killed < atLeast; groups++ {
		killed += e.killGroup(t)
	}
	t.Logf("%d kills of %d groups", killed, groups)
}

// killGroup makes a group, and kills processes until all its members have succeeded. It returns how often.
func (e Engine) killGroup(t *testing.T) (killed int) {
	place := e.New(t)
	kinds := make([]string, e.Members)
	for i := range kinds {
		switch kinds[i] = "k"; {
		case i%100 == 0:
			kinds[i] = "splits"
		case i%100 == 50:
			kinds[i] = "fails"
		}
	}
	e.Look(t, place, func(q Queue) {
		MakeGroup(t, q, kinds...)
		require.NoError(t, group.Close(t.Context(), q, groupName))
	})
	longest := 30 * time.Millisecond
	until := func(done, success int) {
		for ended := false; !ended; longest += longest / 10 { // a busy machine comes to an end too
			c := e.start(t, "group", place)
			lines := c.Within(longest)
			require.Empty(t, c.Stderr.String())
			if len(lines) == 0 {
				killed++
			}
			e.Look(t, place, func(q Queue) { ended = e.judgeGroup(t, q, lines, done, success) })
		}
	}
	until(1, 0)
	e.Look(t, place, func(q Queue) {
		dead := walk(t, q)[pawl.Dead]
		require.Len(t, dead, e.Members/100)
		errs, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbRetry}, dead...)
		require.NoError(t, err)
		require.NoError(t, errors.Join(errs...))
	})
	until(1, 1)
	return killed
}

// walk returns the members that are there, by state.
func walk(t *testing.T, q Queue) map[pawl.State][]pawl.ID {
	t.Helper()
	there := make(map[pawl.State][]pawl.ID)
	for e, err := range q.Jobs(t.Context(), pawl.Filter{Group: groupName}) {
		require.NoError(t, err)
		there[e.State] = append(there[e.State], e.ID)
	}
	return there
}

// judgeGroup compares the counts with the jobs, and the callbacks with the counts. It reports whether all members have
// ended. Lines are what the process said. Done and success are the callbacks that are there then.
func (e Engine) judgeGroup(t *testing.T, q Queue, lines []string, done, success int) (ended bool) {
	t.Helper()
	s, err := group.Get(t.Context(), q, groupName)
	require.NoError(t, err)
	there, pending := walk(t, q), 0
	for state, ids := range there {
		if state != pawl.Dead {
			pending += len(ids)
		}
	}
	require.Equal(t, [2]int{pending, len(there[pawl.Dead])}, [2]int{s.Pending, s.Dead})
	require.Equal(t, s.Total, s.Pending+s.Succeeded+s.Dead)
	gotDone, gotSuccess := Callbacks(t, q)
	if s.Pending > 0 {
		require.Empty(t, lines)
		require.Equal(t, [2]int{min(done, success), 0}, [2]int{gotDone, gotSuccess})
		return false
	}
	require.Equal(t, [2]int{done, success}, [2]int{gotDone, gotSuccess})
	require.GreaterOrEqual(t, s.Total, e.Members+e.Members/100)
	return true
}
