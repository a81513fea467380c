package bolt

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

func TestWhenFetchGivesUp(t *testing.T) {
	ready := func(t *testing.T, q *Queue) { add(t, q, nil) }
	for _, c := range []struct {
		holds string
		setup func(*testing.T, *Queue)
		empty map[pawl.Wait]bool // which kinds of waiting end with ErrEmpty
	}{
		{"nothing", func(*testing.T, *Queue) {}, map[pawl.Wait]bool{pawl.WaitNot: true, pawl.WaitDrained: true, pawl.WaitFinished: true}},
		{"a leased job", func(t *testing.T, q *Queue) {
			ready(t, q)
			leaseOne(t, q)
		}, map[pawl.Wait]bool{pawl.WaitNot: true}},
		{"a ready job that may not be leased", func(t *testing.T, q *Queue) {
			ready(t, q)
			leaseOne(t, q)
			expire(q)
		}, map[pawl.Wait]bool{pawl.WaitNot: true}},
		{"a delayed job", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour })
		}, map[pawl.Wait]bool{pawl.WaitNot: true, pawl.WaitDrained: true}},
		{"a dead job", func(t *testing.T, q *Queue) {
			ready(t, q)
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, nil)))
		}, map[pawl.Wait]bool{pawl.WaitNot: true, pawl.WaitDrained: true, pawl.WaitFinished: true}},
		{"a ready job in another queue", func(t *testing.T, q *Queue) {
			fill(t, q, 1, "other")
		}, map[pawl.Wait]bool{pawl.WaitNot: true, pawl.WaitDrained: true, pawl.WaitFinished: true}},
	} {
		for _, wait := range []pawl.Wait{pawl.WaitForJob, pawl.WaitNot, pawl.WaitDrained, pawl.WaitFinished} {
			t.Run(fmt.Sprintf("%s, wait %d", c.holds, wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := openTest(t, nil)
					c.setup(t, q)
					ctx, cancel := context.WithCancel(t.Context())
					call := started(func() error {
						_, err := q.Fetch(ctx, pawl.Request{Max: 1, Ahead: 1, Wait: wait, Queues: []string{pawl.DefaultQueue, "never seen"}})
						return err
					})
					synctest.Wait()
					if c.empty[wait] {
						require.Equal(t, pawl.ErrEmpty, <-call)
					} else {
						require.Empty(t, call, "wait %d goes on", wait)
					}
					cancel()
				})
			})
		}
	}
}

// A fetch that waits for the end of the work ends with the commit that ends the work.
func TestDrainEndsWithTheLastJob(t *testing.T) {
	for wait, verbs := range map[pawl.Wait][]string{
		pawl.WaitDrained:  {"ack", "abandon", "snooze"},
		pawl.WaitFinished: {"ack", "abandon"},
	} {
		for _, verb := range settling {
			t.Run(fmt.Sprintf("%s, wait %d", verb.name, wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := openTest(t, nil)
					add(t, q, nil)
					l := leaseOne(t, q)
					call := started(func() error {
						_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: wait})
						return err
					})
					synctest.Wait()
					require.Empty(t, call)
					require.NoError(t, verb.end(t.Context(), q, l))
					var want error // the job itself becomes ready again
					if slices.Contains(verbs, verb.name) {
						want = pawl.ErrEmpty
					}
					require.Equal(t, want, <-call)
				})
			})
		}
	}
}
