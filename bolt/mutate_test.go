package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// opsVerbs is every verb of a mutation, on the jobs of a stand.
var opsVerbs = []struct {
	name    string
	plan    func(*ops, stand) error
	want    pawl.Counts
	settled bool
	events  []string
}{
	{"none", func(*ops, stand) error { return nil }, atFirst, false, nil},
	{"enqueue", func(p *ops, _ stand) error {
		return withid.EnqueueOps(p, &pawl.Envelope{Kind: "k", Payload: make([]byte, 2*largePayload)}, &pawl.Envelope{Kind: "k", Delay: time.Hour})
	}, pawl.Counts{Ready: 1, Delayed: 3, Leased: 1, Dead: 1}, false, []string{"enqueued", "enqueued"}},
	{"enqueue of none", func(p *ops, _ stand) error { return withid.EnqueueOps(p) }, atFirst, false, nil},
	{"hold", func(p *ops, s stand) error { return p.Hold(s.lease) }, atFirst, false, nil},
	{"ack", func(p *ops, s stand) error { return p.Ack(s.lease) },
		pawl.Counts{Delayed: 2, Dead: 1}, true, []string{"succeeded"}},
	{"snooze", func(p *ops, s stand) error { return p.Snooze(s.lease, p.Now().Add(time.Hour)) },
		pawl.Counts{Delayed: 3, Dead: 1}, true, []string{"snoozed"}},
	{"snooze until a time that has passed", func(p *ops, s stand) error { return p.Snooze(s.lease, time.Time{}) },
		pawl.Counts{Ready: 1, Delayed: 2, Dead: 1}, true, []string{"snoozed"}},
	{"run a delayed job now", func(p *ops, s stand) error { return p.RunNow(s.delayed) },
		pawl.Counts{Ready: 1, Delayed: 1, Leased: 1, Dead: 1}, false, []string{"run_now"}},
	{"retry", func(p *ops, s stand) error { return p.Retry(s.dead) },
		pawl.Counts{Ready: 1, Delayed: 2, Leased: 1}, false, []string{"revived"}},
	{"all at once, in the order of the mutation", func(p *ops, s stand) error {
		return errors.Join(
			p.Retry(s.dead), withid.EnqueueOps(p, &pawl.Envelope{Kind: "k"}), p.RunNow(s.later), p.Ack(s.lease), p.RunNow(s.delayed),
			withid.EnqueueOps(p, &pawl.Envelope{Kind: "k"}))
	}, pawl.Counts{Ready: 5}, true, []string{"revived", "enqueued", "run_now", "succeeded", "run_now", "enqueued"}},
}

// Rule: a verb and the mutation's own rows are both in the file, also after it is reopened, or
// neither is. After an error of Check or Apply everything is unchanged. Events are emitted for
// durable changes.
func TestOpsAndRowsAreOne(t *testing.T) {
	for _, c := range opsVerbs {
		for _, half := range []string{"Check", "Apply", ""} {
			t.Run(fmt.Sprint(c.name, ", refused by ", half), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "jobs.db")
					q := openAt(t, path, nil)
					g := gateCommits(q)
					s := newStand(t, q)
					var events eventLog
					defer q.Listen(events.event)()
					before, commits := digest(t, q), g.commits.Load()
					g.look = func(*bbolt.Tx) {
						require.Empty(t, events.take(), "nothing is committed yet")
						require.Equal(t, before, digest(t, q), "nor to be seen")
					}
					r := riding("row", func(p *ops) error { return c.plan(p, s) })
					if half != "" {
						err := q.Mutate(t.Context(), refusing(half, r, errRolledBack), 0)
						require.True(t, err == errRolledBack, "the answer is the error as it is: %v", err)
						synctest.Wait()
						require.Equal(t, commits, g.commits.Load(), "nothing is written")
						require.Equal(t, before, digest(t, q))
						require.Empty(t, appRows(t, q.db))
						require.Empty(t, events.take())
						require.False(t, driver.Settled(s.lease))
						require.NoError(t, q.Settle(t.Context(), s.lease.Ack()))
						return
					}
					require.NoError(t, q.Mutate(t.Context(), r, 0))
					require.Equal(t, commits+1, g.commits.Load())
					require.Equal(t, c.events, events.take())
					require.Equal(t, c.settled, driver.Settled(s.lease))
					checkNow(t, q)
					for want := range []int{0, 1} {
						counts := c.want
						if want == 1 { // the holder of the lease is gone
							require.NoError(t, q.Close())
							q = openAt(t, path, nil)
							counts.Ready, counts.Leased = counts.Ready+counts.Leased, 0
						}
						require.Equal(t, []string{"row"}, appRows(t, q.db))
						require.Equal(t, counts, countsOf(t, q, pawl.DefaultQueue))
					}
				})
			})
		}
	}
}

// Rule: a verb that a job's state does not allow is refused as the queue's own verb is. A
// mutation may continue without it.
func TestOpsRefuseWhatTheQueueRefuses(t *testing.T) {
	q := openTest(t, nil)
	s := newStand(t, q)
	unknown := pawl.NewID(time.Now())
	before := digest(t, q)
	for _, c := range []struct {
		name string
		plan func(*ops) error
		want error
	}{
		{"run now of one that is leased", func(p *ops) error { return p.RunNow(s.lease.ID) }, pawl.ErrConflict},
		{"run now of a dead job", func(p *ops) error { return p.RunNow(s.dead) }, pawl.ErrConflict},
		{"run now of none", func(p *ops) error { return p.RunNow(unknown) }, pawl.ErrNotFound},
		{"retry of one that waits", func(p *ops) error { return p.Retry(s.delayed) }, pawl.ErrConflict},
		{"retry of none", func(p *ops) error { return p.Retry(unknown) }, pawl.ErrNotFound},
		{"enqueue of an ID that is taken", func(p *ops) error { return withid.EnqueueOps(p, &pawl.Envelope{ID: s.later, Kind: "k"}) }, pawl.ErrConflict},
		{"enqueue without a kind", func(p *ops) error { return withid.EnqueueOps(p, &pawl.Envelope{}) }, pawl.ErrInvalid},
		{"enqueue of too much", func(p *ops) error {
			return withid.EnqueueOps(p, &pawl.Envelope{Kind: "k", Payload: make([]byte, q.MaxPayload()+1)})
		}, pawl.ErrPayloadTooLarge},
	} {
		require.ErrorIs(t, q.Mutate(t.Context(), riding("row", c.plan), 0), c.want, c.name)
		require.Equal(t, before, digest(t, q), c.name)
		require.Empty(t, appRows(t, q.db), c.name)
		require.NoError(t, q.Mutate(t.Context(), riding(c.name, func(p *ops) error {
			if err := c.plan(p); !errors.Is(err, c.want) {
				return fmt.Errorf("it was not refused: %w", err)
			}
			return nil
		}), 0), c.name)
		require.Equal(t, before, digest(t, q), c.name)
		require.Contains(t, appRows(t, q.db), c.name)
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return tx.DeleteBucket(appBucket) }))
	}
}

// Rule: a verb of a mutation does not see the effects of earlier verbs in the same mutation, so
// each job and each unique key may be named only once. A second use refuses the mutation,
// whatever the two verbs are.
func TestPlanNamesAJobOnce(t *testing.T) {
	q := openTest(t, nil)
	unique := func(e *pawl.Envelope) { e.Kind, e.UniqueKey = "u", "key" }
	var dead []pawl.ID
	for range 2 {
		dead = append(dead, add(t, q, unique).ID)
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	}
	add(t, q, func(e *pawl.Envelope) { e.Kind, e.UniqueKey = "u", "held" })
	held := leaseOne(t, q)
	s := stand{lease: held, dead: dead[0], delayed: add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour }).ID}
	id := pawl.NewID(time.Now())
	envelope := func(key string) *pawl.Envelope {
		return &pawl.Envelope{Kind: "u", UniqueKey: key, OnConflict: pawl.UseExisting}
	}
	before := digest(t, q)
	for name, plan := range map[string]func(*ops) []error{
		"ack and snooze": func(p *ops) []error { return []error{p.Ack(s.lease), p.Snooze(s.lease, p.Now())} },
		"hold and ack":   func(p *ops) []error { return []error{p.Hold(s.lease), p.Ack(s.lease)} },
		"hold twice":     func(p *ops) []error { return []error{p.Hold(s.lease), p.Hold(s.lease)} },
		"run now twice":  func(p *ops) []error { return []error{p.RunNow(s.delayed), p.RunNow(s.delayed)} },
		"retry twice":    func(p *ops) []error { return []error{p.Retry(s.dead), p.Retry(s.dead)} },
		"enqueue twice": func(p *ops) []error {
			return []error{withid.EnqueueOps(p, &pawl.Envelope{ID: id, Kind: "k"}), withid.EnqueueOps(p, &pawl.Envelope{ID: id, Kind: "k"})}
		},
		"ack of the job that an enqueue is told of": func(p *ops) []error {
			return []error{p.Ack(s.lease), withid.EnqueueOps(p, envelope("held"))}
		},
		"enqueue under one key twice": func(p *ops) []error {
			return []error{withid.EnqueueOps(p, envelope("new")), withid.EnqueueOps(p, envelope("new"))}
		},
		"enqueue and retry under one key": func(p *ops) []error {
			return []error{withid.EnqueueOps(p, envelope("key")), p.Retry(s.dead)}
		},
		"retry of two under one key": func(p *ops) []error { return []error{p.Retry(dead[0]), p.Retry(dead[1])} },
	} {
		require.ErrorIs(t, q.Mutate(t.Context(), riding("row", func(p *ops) error {
			errs := plan(p)
			if errs[0] != nil {
				return errors.New("the first verb was refused")
			}
			return errs[1]
		}), 0), pawl.ErrInvalid, name)
		require.Equal(t, before, digest(t, q), name)
		require.Empty(t, appRows(t, q.db), name)
	}

	// The jobs of one enqueue see each other, as everywhere.
	var done []pawl.Enqueued
	require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) (err error) {
		done, err = p.Enqueue(envelope("batch"), envelope("batch"))
		return err
	}), 0))
	require.False(t, done[0].Existing)
	require.Equal(t, pawl.Enqueued{ID: done[0].ID, Existing: true}, done[1])
}

// Rule: a mutation leaves the envelopes of its jobs as they are, and knows the IDs of the jobs that
// are stored.
func TestPlanLeavesEnvelopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		given := pawl.NewID(time.Now())
		one, two := &pawl.Envelope{Kind: "k"}, &pawl.Envelope{ID: given, Kind: "k"}
		was := []pawl.Envelope{*one, *two}
		var done []pawl.Enqueued
		plan := func(p *ops) (err error) {
			done, err = p.Enqueue(one, two)
			return err
		}
		for _, half := range []string{"Check", "Apply"} {
			require.ErrorIs(t, q.Mutate(t.Context(), refusing(half, riding("row", plan), errBoom), 0), errBoom)
			require.Equal(t, was, []pawl.Envelope{*one, *two})
		}
		reached, leave := g.hold()
		joined := started(func() error { return q.Mutate(t.Context(), riding("row", plan), 0) })
		reached()
		synctest.Wait()
		leave()
		require.NoError(t, <-joined)
		require.Equal(t, was, []pawl.Envelope{*one, *two})
		require.Equal(t, given, done[1].ID)
		for _, d := range done {
			require.Equal(t, pawl.Ready, find(t, q, d.ID).State)
		}
	})
}

// Rule: a mutation can read the states of jobs, and the time by the queue's clock.
func TestPlanLooks(t *testing.T) {
	clock := new(stepClock)
	clock.step(1000 * time.Hour)
	q := openTest(t, &Options{Now: clock.now})
	s := newStand(t, q)
	want := map[pawl.ID]pawl.State{
		s.lease.ID: pawl.Leased, s.delayed: pawl.Delayed, s.later: pawl.Delayed, s.dead: pawl.Dead,
		add(t, q, nil).ID: pawl.Ready, pawl.NewID(time.Now()): "",
	}
	got := make(map[pawl.ID]pawl.State)
	require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) error {
		if txOf(p).Bucket(bucketRoot) == nil || p.Now().Sub(clock.now()).Abs() > time.Hour {
			return errBoom
		}
		for id := range want {
			state, err := p.State(id)
			if err != nil {
				return err
			}
			got[id] = state
		}
		return nil
	}), 0))
	require.Equal(t, want, got)

	// The state of an unreadable job is unknown.
	swap := func(to []byte) (was []byte) {
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucketRoot).Bucket(bucketJobs)
			was = bytes.Clone(b.Get(s.dead[:]))
			return b.Put(s.dead[:], to)
		}))
		return was
	}
	sound := swap([]byte("no record"))
	require.ErrorIs(t, q.Mutate(t.Context(), riding("row", func(p *ops) error {
		_, err := p.State(s.dead)
		return err
	}), 0), pawl.ErrCorrupt)
	swap(sound)
}

// Rule: a job may be snoozed for any time, and RunNow makes it ready at any time.
func TestPlanSnoozesForACentury(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q := openAt(t, path, nil)
	id := add(t, q, nil).ID
	l := leaseOne(t, q)
	until := time.Now().AddDate(100, 0, 0)
	require.NoError(t, q.Mutate(t.Context(), riding("snoozed", func(p *ops) error { return p.Snooze(l, until) }), 0))
	require.NoError(t, q.Close())
	q = openAt(t, path, nil)
	require.Empty(t, fetch(t, q, 1))
	require.Equal(t, pawl.Delayed, find(t, q, id).State)
	require.WithinDuration(t, until, find(t, q, id).NotBefore, time.Minute)
	require.NoError(t, q.Mutate(t.Context(), riding("woken", func(p *ops) error { return p.RunNow(id) }), 0))
	require.Equal(t, id, leaseOne(t, q).ID)
	require.Equal(t, []string{"snoozed", "woken"}, appRows(t, q.db))
}

// Rule: a job that was cancelled while leased does not return from a snooze.
func TestPlanSnoozesACancelledJob(t *testing.T) {
	q := openTest(t, nil)
	id := add(t, q, nil).ID
	l := leaseOne(t, q)
	require.NoError(t, q.Cancel(context.Background(), id))
	require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) error { return p.Snooze(l, p.Now().Add(1)) }), 0))
	require.Equal(t, pawl.ReasonCancelled, find(t, q, id).Death.Reason)
	require.Equal(t, []string{"row"}, appRows(t, q.db))
}
