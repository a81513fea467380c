package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// rowsIn returns how many rows a bucket has.
func rowsIn(t *testing.T, q *Queue, bucket []byte) (n int) {
	t.Helper()
	require.NoError(t, q.view(t.Context(), func(s *store) error {
		return s.table(bucket).bucket().ForEach(func(_, _ []byte) error { n++; return nil })
	}))
	return n
}

// Rule: the failures of a job without additional rows stand in front of its record, until they are
// too long or the record changes for another reason. Nobody sees the difference, and an ack leaves
// no row.
func TestRecentFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*pawl.Envelope)
		causes  []error
		history int // rows of it
		then    func(t *testing.T, q *Queue, l *pawl.Lease)
	}{
		{name: "one", causes: []error{errBoom}},
		{name: "an empty text", causes: []error{errors.New("")}},
		{name: "a separate payload", change: func(e *pawl.Envelope) { e.Payload = make([]byte, 5000) }, causes: []error{errBoom, errBoom}},
		{name: "a priority", change: func(e *pawl.Envelope) { e.Priority = -128 }, causes: []error{errBoom, errBoom}},
		{name: "too long", causes: []error{errBoom, errors.New(strings.Repeat("x", maxRecent))}, history: 2},
		{name: "a stack", causes: []error{errBoom, stackError{}, errBoom}, history: 2},
		{name: "a deadline", change: func(e *pawl.Envelope) { e.Deadline = time.Now().Add(time.Hour) }, causes: []error{errBoom}, history: 1},
		{name: "a crash", causes: []error{errBoom, errBoom}, history: 2, then: func(_ *testing.T, q *Queue, _ *pawl.Lease) { expire(q) }},
		{name: "a release", causes: []error{errBoom, errBoom}, history: 2, then: func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.NoError(t, q.Settle(t.Context(), l.Release()))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				e := add(t, q, c.change)
				var want []pawl.Failure
				for i, cause := range c.causes {
					pass(time.Second)
					require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(time.Minute, cause)))
					text, stack := causeOf(cause)
					want = append(want, pawl.Failure{Attempt: i + 1, At: fromFile(time.Now()), Error: text, Stack: stack})
					got := find(t, q, e.ID)
					require.Equal(t, pawl.Delayed, got.State)
					require.Equal(t, fromFile(time.Now().Add(time.Minute)), got.NotBefore)
					require.Equal(t, fromFile(time.Now()), got.BackoffSince)
					checkNow(t, q)
					pass(time.Minute)
					synctest.Wait()
				}
				if c.then != nil {
					c.then(t, q, leaseOne(t, q))
				}
				require.Equal(t, c.history, rowsIn(t, q, bucketHistory))
				l := leaseOne(t, q)
				require.Equal(t, e.Priority, l.Priority)
				require.Equal(t, len(c.causes), l.Failures)
				require.Equal(t, len(c.causes), l.Attempts)
				got := find(t, q, e.ID)
				require.Equal(t, want, got.History)
				require.Equal(t, e.Payload, got.Payload)
				last, err := q.List(t.Context(), pawl.Filter{State: pawl.Leased}, "", 10)
				require.NoError(t, err)
				require.Equal(t, want[len(want)-1].Error, last.Jobs[0].Job.History[len(last.Jobs[0].Job.History)-1].Error)
				checkNow(t, q)
				require.NoError(t, q.Settle(t.Context(), l.Ack()))
				for _, bucket := range [][]byte{bucketJobs, bucketPayloads, bucketHistory} {
					require.Zero(t, rowsIn(t, q, bucket), "%s", bucket)
				}
				checkNow(t, q)
			})
		})
	}
}

// stackError is an error with a stack.
type stackError struct{}

func (stackError) Error() string      { return "traced" }
func (stackError) StackTrace() string { return "main.go:7" }

// causeOf returns the two texts that a cause leaves in a history.
func causeOf(err error) (text, stack string) {
	if traced, ok := err.(stackError); ok {
		stack = traced.StackTrace()
	}
	return err.Error(), stack
}

// Rule: the cancellation of a leased job with failures in front of its record loses none of them,
// however the attempt ends.
func TestCancelAfterAFailure(t *testing.T) {
	for name, settle := range map[string]func(l *pawl.Lease) pawl.Settlement{
		"nack": func(l *pawl.Lease) pawl.Settlement { return l.Nack(0, errors.New("again")) },
		"ack":  (*pawl.Lease).Ack,
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, nil)
			id := add(t, q, nil).ID
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errBoom)))
			l := leaseOne(t, q)
			require.NoError(t, q.Cancel(t.Context(), id))
			checkNow(t, q)
			require.NoError(t, q.Settle(t.Context(), settle(l)))
			checkNow(t, q)
			e := find(t, q, id)
			if name == "ack" {
				require.Nil(t, e)
				require.Zero(t, rowsIn(t, q, bucketHistory))
				return
			}
			require.Equal(t, pawl.ReasonCancelled, e.Death.Reason)
			require.Len(t, e.History, 2)
			require.Equal(t, "boom", e.History[0].Error)
			require.Equal(t, "again", e.History[1].Error)
		})
	}
}

// Rule: a restart, a compaction, and a salvage keep the failures in front of a record.
func TestRecentFailuresInACopy(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(time.Hour, errBoom)))
	want := find(t, q, id)
	compacted := filepath.Join(folder, "compacted.db")
	require.NoError(t, q.Compact(t.Context(), compacted))
	require.NoError(t, q.Close())
	salvaged, _ := salvageTo(t, path)
	for _, file := range []string{path, compacted, salvaged} {
		q, err := Open(file, quiet())
		require.NoError(t, err)
		require.Equal(t, want, find(t, q, id), file)
		require.Zero(t, rowsIn(t, q, bucketHistory))
		checkNow(t, q)
		require.NoError(t, q.Close())
	}
}

// Rule: no byte in front of a record can change unnoticed, and a checksum alone makes no sound
// failures.
func TestDamagedRecentFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errBoom)))
	require.NoError(t, q.Close())
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	var value []byte
	withBolt(t, path, func(tx *bbolt.Tx) error {
		value = append(value, tx.Bucket(bucketRoot).Bucket(bucketJobs).Get(id[:])...)
		return nil
	})
	require.NoError(t, os.WriteFile(path, sound, 0o600))
	j, err := parseStored(id, value)
	require.NoError(t, err)
	require.Equal(t, 1, j.Failures)
	failures, record, err := cutRecent(id, value)
	require.NoError(t, err)
	front := len(value) - len(record)
	for i := range front {
		b := append([]byte(nil), value...)
		b[i] ^= 4
		_, err := parseStored(id, b)
		require.ErrorIs(t, err, pawl.ErrCorrupt, "byte %d", i)
		_, err = parseStored(id, value[:i])
		require.Error(t, err, "%d bytes", i)
	}
	for n := range len(failures) { // sealed as failures that are cut off
		b := append([]byte{recentForm, 0, byte(n)}, failures[:n]...)
		_, err := parseStored(id, append(seal(id[:], b), record...))
		require.ErrorIs(t, err, pawl.ErrCorrupt, "%d bytes of failures", n)
	}
	_, err = parseStored(pawl.ID{1}, value)
	require.ErrorIs(t, err, pawl.ErrCorrupt, "under the key of another job")
}

// Rule: Check compares the priority, the sequence, and the key of a lease with the record of its job.
func TestCheckOfALease(t *testing.T) {
	q := openTest(t, nil)
	id := add(t, q, nil).ID
	leaseOne(t, q)
	for _, change := range []func(r *leaseRow){
		func(r *leaseRow) { r.priority++ },
		func(r *leaseRow) { r.seq++ },
		func(r *leaseRow) { r.key = "another" },
	} {
		var old []byte
		put := func(row func(r leaseRow) []byte) {
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucketRoot).Bucket(bucketLeased)
				old = append([]byte(nil), b.Get(id[:])...)
				r, err := parseLeaseRow(id[:], old)
				if err != nil {
					return err
				}
				return b.Put(id[:], row(r))
			}))
		}
		put(func(r leaseRow) []byte { change(&r); return seal(id[:], r.append(nil)) })
		before := old
		require.ErrorContains(t, q.Check(t.Context()), "in its lease")
		put(func(leaseRow) []byte { return before })
		checkNow(t, q)
	}
}
