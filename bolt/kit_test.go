package bolt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// openTest opens a queue in a folder of the test. At the end of the test the queue
// is closed and its file checked, so no test leaves a broken one unnoticed.
func openTest(t *testing.T, opts *Options) *Queue {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "jobs.db"), opts)
}

// openAt is openTest for a file that an earlier queue of the test may have left.
func openAt(t *testing.T, path string, opts *Options) *Queue {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	q, err := Open(path, &o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, q.Close())
		checkFile(t, path)
	})
	return q
}

// checkFile requires that the file at path keeps every invariant of its format.
func checkFile(t testing.TB, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return fmt.Errorf("bbolt: %w", err)
		}
		s, err := openStore(tx)
		if err != nil {
			return err
		}
		return errors.Join(append(s.violations(), s.keyViolations()...)...)
	}))
}

// violations compares every row with every other: each job is in exactly one state
// and its row is the one that its record asks for; rows, payloads and histories
// belong to a job; the counts are those of a full scan.
func (s *store) violations() (found []error) {
	wrong := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }
	states := make(map[pawl.ID][]pawl.State)
	counts := make(map[string]*pawl.Counts)
	queues := make(map[queueNumber]string)
	err := s.eachQueue(func(n queueNumber, row *queueRow) error {
		counts[row.name], queues[n] = new(pawl.Counts), row.name
		if number, ok, err := s.number(row.name); err != nil || !ok || number != n {
			wrong("queue %q has number %d, its name leads to %d (%v)", row.name, n, number, err)
		}
		return nil
	})
	if err != nil {
		wrong("queues: %w", err)
	}
	flagsOf := make(map[pawl.ID]flags)
	scan := func(b *table, state func(k []byte) pawl.State) {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			id, err := rowID(state(k), k, v)
			if err != nil {
				wrong("row %x: %w", k, err)
				continue
			}
			states[id] = append(states[id], state(k))
			st := state(k)
			if b == s.delayed {
				st = pawl.Delayed // and parked, and aside: they have the same form
			}
			switch st {
			case pawl.Leased:
				row, err := parseLeaseRow(k, v)
				if err != nil {
					wrong("lease %x: %w", k, err)
				}
				flagsOf[id] = row.flags
				if e, err := s.record(id); err == nil && queues[row.queue] != e.Queue {
					wrong("the lease of job %s counts for queue %q, the job is in %q", id, queues[row.queue], e.Queue)
				}
			case pawl.Delayed:
				row, _ := parseDelayedRow(k, v)
				flagsOf[id] = row.flags
				if e, err := s.record(id); err == nil {
					n, _, _ := s.number(e.Queue)
					if !bytes.Equal(row.ready, readyKey(nil, n, e.Envelope)) {
						wrong("job %s would be promoted to the wrong place", id)
					}
				}
			default:
				row, err := parseIndexRow(k, v)
				if b == s.completed {
					var done completedRow
					done, err = parseCompletedRow(k, v)
					row = done.indexRow
					if e, err := s.record(done.id); err == nil && queues[done.queue] != e.Queue {
						wrong("the completed job %s counts for queue %q, the job is in %q", done.id, queues[done.queue], e.Queue)
					}
				}
				if err != nil {
					wrong("row %x: %w", k, err)
				}
				flagsOf[id] = row.flags
			}
		}
	}
	scan(s.ready, func([]byte) pawl.State { return pawl.Ready })
	scan(s.delayed, func(k []byte) pawl.State {
		return map[byte]pawl.State{waitsForTime: pawl.Delayed, waitsForKind: pawl.Parked, waitsForKey: pawl.Ready}[k[0]]
	})
	scan(s.leased, func([]byte) pawl.State { return pawl.Leased })
	scan(s.failed, func([]byte) pawl.State { return pawl.Dead })
	scan(s.completed, func([]byte) pawl.State { return pawl.Completed })

	c := s.jobs.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		id := pawl.ID(k)
		in := states[id]
		delete(states, id)
		if len(in) != 1 {
			wrong("job %s is in the states %v", id, in)
			continue
		}
		e, err := s.job(id)
		if err != nil {
			wrong("%w", err)
			continue
		}
		if e.State != in[0] {
			wrong("job %s is %s, its record leads to %s", id, in[0], e.State)
		}
		if n := counts[e.Queue]; n != nil {
			*n.Of(in[0])++
		}
		j, _ := s.record(id)
		if flagsOf[id] != j.flags() {
			wrong("job %s has flags %b in its row, %b in its record", id, flagsOf[id], j.flags())
		}
		if (j.apart != 0) != (s.payloads.Get(k) != nil) {
			wrong("job %s says that %d bytes of payload lie apart", id, j.apart)
		}
		if len(e.History) != min(e.Failures, pawl.HistoryKeepHead+pawl.HistoryKeepTail) {
			wrong("job %s failed %d times and has a history of %d", id, e.Failures, len(e.History))
		}
		if e.Seq > s.jobs.Sequence() {
			wrong("job %s has sequence %d, the file is at %d", id, e.Seq, s.jobs.Sequence())
		}
	}
	for id, in := range states {
		wrong("a %v row leads to job %s, which is not there", in, id)
	}
	for _, b := range []*table{s.payloads, s.history} {
		c := b.Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			if s.jobs.Get(k[:16]) == nil {
				wrong("row %x belongs to no job", k)
			}
		}
	}
	_ = s.eachQueue(func(_ queueNumber, row *queueRow) error {
		if row.counts != *counts[row.name] {
			wrong("queue %q counts %+v, a scan finds %+v", row.name, row.counts, *counts[row.name])
		}
		return nil
	})
	return found
}

// keyViolations compares what the keys and deadlines of jobs say with the rows that
// belong to them.
func (s *store) keyViolations() (found []error) {
	wrong := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }
	job := func(id []byte) stored {
		j, err := s.record(pawl.ID(id))
		if err != nil {
			return stored{Envelope: new(pawl.Envelope)}
		}
		return j
	}
	each := func(b *table, width int, fn func(k, v []byte)) {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if value, err := unseal(k, v, width); err != nil {
				wrong("row %x: %w", k, err)
			} else {
				fn(k, value)
			}
		}
	}
	each(s.unique, 16, func(k, v []byte) {
		j := job(v)
		if n, _, _ := s.number(j.Queue); j.UniqueKey == "" || !bytes.Equal(k, uniqueKey(nil, n, j.Envelope)) {
			wrong("unique key %q leads to job %s, whose key it is not", k, j.ID)
		}
	})
	holders := make(map[string]pawl.ID)
	each(s.effects, effectWidth, func(k, v []byte) {
		sealed := s.effects.Get(k)
		row, _ := parseEffectRow(k, sealed)
		if row == (effectRow{}) {
			wrong("effect %q is neither leased nor done", k)
		}
		if row.holder != (pawl.ID{}) {
			holders[string(k)] = row.holder
			if s.leased.Get(row.holder[:]) == nil {
				wrong("effect %q is held by job %s, which is not leased", k, row.holder)
			}
		}
		if !row.done.IsZero() && s.expiry.Get(effectEndKey(nil, row.done, k)) == nil {
			wrong("effect %q would be done for ever", k)
		}
	})
	each(s.expiry, 0, func(k, _ []byte) {
		if k[timeWidth] == endsLife && !bytes.Equal(k, deadlineKey(nil, job(k[timeWidth+1:]).Envelope)) {
			wrong("deadline %x is that of no job", k)
		}
	})
	ready := make(map[string]bool) // keys of ready jobs, by queue
	aside := make(map[string]pawl.ID)
	c := s.jobs.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		j := job(k)
		p, err := s.where(j.Envelope)
		if err != nil {
			continue
		}
		if waits := p.state != pawl.Leased && p.state != pawl.Dead && p.state != pawl.Completed; waits && !j.Deadline.IsZero() &&
			s.expiry.Get(deadlineKey(nil, j.Envelope)) == nil {
			wrong("nobody looks at the deadline of job %s", j.ID)
		}
		if j.IdempotencyKey == "" {
			continue
		}
		effect := string(effectKey(nil, j.Envelope))
		switch {
		case p.state == pawl.Leased && holders[effect] != j.ID:
			wrong("job %s is leased, its effect is held by %s", j.ID, holders[effect])
		case p.state == pawl.Ready && bytes.Equal(p.key, heldKey(nil, []byte(effect), p.queue, j.Envelope)):
			aside[j.Queue+effect] = j.ID
			if _, held := holders[effect]; held {
				ready[j.Queue+effect] = true
			}
		case p.state == pawl.Ready:
			ready[j.Queue+effect] = true
		}
	}
	for key, id := range aside {
		if !ready[key] {
			wrong("job %s was put aside and nothing brings it back", id)
		}
	}
	return found
}

// add enqueues a job of kind "k" and returns it.
func add(t *testing.T, q *Queue, change func(*pawl.Envelope)) *pawl.Envelope {
	t.Helper()
	e := &pawl.Envelope{Kind: "k", MaxRetries: 3, Payload: []byte("payload")}
	if change != nil {
		change(e)
	}
	require.NoError(t, q.Enqueue(context.Background(), e))
	return e
}

// fetch leases up to n jobs that may all start at once, and does not wait.
func fetch(t *testing.T, q *Queue, n int, queues ...string) []*pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(context.Background(), pawl.Request{Queues: queues, Max: n, Wait: pawl.WaitNot})
	if errors.Is(err, pawl.ErrEmpty) {
		return nil
	}
	require.NoError(t, err)
	return leases
}

// find reads a job back; nil when it is gone.
func find(t *testing.T, q *Queue, id pawl.ID) *pawl.Envelope {
	t.Helper()
	e, err := q.Job(context.Background(), id)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	require.NoError(t, err)
	return e
}

// countsOf are the counts of one queue.
func countsOf(t *testing.T, q *Queue, name string) pawl.Counts {
	t.Helper()
	stats, err := q.Stats(context.Background())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		if row.Name == name {
			return row.Counts
		}
	}
	return pawl.Counts{}
}

// leaseOne leases the only job that may be fetched now.
func leaseOne(t *testing.T, q *Queue, queues ...string) *pawl.Lease {
	t.Helper()
	leases := fetch(t, q, 2, queues...)
	require.Len(t, leases, 1)
	return leases[0]
}

// kindsOf are the kinds of leases, in their order.
func kindsOf(leases []*pawl.Lease) string {
	var kinds []byte
	for _, l := range leases {
		kinds = append(kinds, l.Kind...)
	}
	return string(kinds)
}

// atOnce runs fn for every lease, all at the same time, so that they share commits.
func atOnce(t *testing.T, leases []*pawl.Lease, fn func(*pawl.Lease) error) {
	t.Helper()
	errs := make(chan error, len(leases))
	for _, l := range leases {
		go func() { errs <- fn(l) }()
	}
	for range leases {
		require.NoError(t, <-errs)
	}
}

// checkNow is checkFile for a queue that is open.
func checkNow(t *testing.T, q *Queue) {
	t.Helper()
	require.NoError(t, q.view(t.Context(), func(s *store) error { return errors.Join(append(s.violations(), s.keyViolations()...)...) }))
}

// digest sums up every row of the file.
func digest(t *testing.T, q *Queue) string {
	t.Helper()
	h := sha256.New()
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			b := tx.Bucket(bucketRoot).Bucket(name)
			fmt.Fprintf(h, "%s %d\n", name, b.Sequence())
			_ = b.ForEach(func(k, v []byte) error {
				fmt.Fprintf(h, "%x %x\n", k, v)
				return nil
			})
		}
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// stepClock is a wall clock that a test sets. Between two steps it goes on.
type stepClock struct{ offset atomic.Int64 }

func (c *stepClock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())).Round(0) }

func (c *stepClock) step(d time.Duration) { c.offset.Add(int64(d)) }

// pass lets virtual time go by, in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
