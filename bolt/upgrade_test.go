package bolt

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// format1 is a file that a build of format 1 left: a process had crashed twice over it.
func format1(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "format1.db.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func writeFormat1(t *testing.T) string {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "jobs.db")
	require.NoError(t, os.WriteFile(path, format1(t), 0o600))
	return path
}

// formatOf reads the version of a closed file.
func formatOf(t *testing.T, path string) (version uint32) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		version, err = format(tx)
		return err
	}))
	return version
}

// at stops the clock of a queue: at 0 when the file was left.
func at(since time.Duration) *Options {
	o := quiet()
	o.Now = func() time.Time { return time.Date(2026, time.November, 21, 9, 0, 10, 0, time.UTC).Add(since) }
	return o
}

// upgraded are the jobs of the file, as format 1 left them and Open has to find them: the
// lease of the last process was taken back.
var upgraded = []struct {
	kind, queue                 string
	state                       pawl.State
	attempts, crashes, failures int
	priority                    int8
}{
	{"retried", "a", pawl.Ready, 1, 0, 1, 0},
	{"ready", "a", pawl.Ready, 0, 0, 0, 3},
	{"large", "a", pawl.Ready, 0, 0, 0, -5},
	{"delayed", "a", pawl.Delayed, 0, 0, 0, 0},
	{"waits for its retry", "b", pawl.Delayed, 1, 0, 1, 0},
	{"exhausted", "b", pawl.Dead, 1, 0, 1, 0},
	{"parked", "b", pawl.Parked, 0, 0, 0, 0},
	{"parked after a failure", "b", pawl.Parked, 1, 0, 1, 0},
	{"leased after a failure", "b", pawl.Ready, 1, 1, 1, 0},
	{"leased", "c", pawl.Ready, 0, 1, 0, 0},
}

// A file of format 1 is brought to this build's format when it is opened to write, with
// every job where it was.
func TestUpgrade(t *testing.T) {
	path := writeFormat1(t)
	q := openAt(t, path, at(0))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, formatVersion, stats.Format)
	for name, want := range map[string]pawl.Counts{
		"a": {Ready: 3, Delayed: 1}, "b": {Ready: 1, Delayed: 1, Parked: 2, Dead: 1}, "c": {Ready: 1},
	} {
		require.Equal(t, want, countsOf(t, q, name), name)
	}
	byKind := make(map[string]*pawl.Envelope)
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		byKind[e.Kind] = e
	}
	require.Len(t, byKind, len(upgraded))
	for _, want := range upgraded {
		e := byKind[want.kind]
		require.NotNil(t, e, want.kind)
		got := want
		got.queue, got.state, got.attempts, got.crashes, got.failures, got.priority = e.Queue, e.State, e.Attempts, e.Crashes, e.Failures, e.Priority
		require.Equal(t, want, got)
		require.Len(t, e.History, want.failures, want.kind)
		for _, f := range e.History {
			require.Equal(t, 1, f.Attempt)
			require.NotEmpty(t, f.Error)
		}
		require.Equal(t, map[string]string{"trace": want.kind}, e.Headers)
		if want.kind == "large" {
			require.Len(t, e.Payload, 5000)
		} else {
			require.NotEmpty(t, e.Payload)
		}
		require.Equal(t, want.state == pawl.Dead, e.Death != nil)
	}
	checkNow(t, q)
	require.NoError(t, q.Close())
	require.EqualValues(t, formatVersion, formatOf(t, path))
}

// The order of jobs is that of before, retries are known as such, and each state can be
// left: by a fetch, the clock, Unpark and Retry.
func TestUpgradeGoesOn(t *testing.T) {
	path := writeFormat1(t)
	q := openAt(t, path, at(0))
	ordered := func(queue string) (kinds []string) {
		for _, l := range fetch(t, q, 9, queue) {
			kinds = append(kinds, l.Kind)
			require.NoError(t, q.Ack(t.Context(), l))
		}
		return kinds
	}
	share, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"a"}, Max: 2, RetryShare: 0.5, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Equal(t, []string{"ready", "retried"}, []string{share[0].Kind, share[1].Kind})
	for _, l := range share {
		require.NoError(t, q.Release(t.Context(), l))
	}
	require.Equal(t, []string{"ready", "retried", "large"}, ordered("a"))
	require.Equal(t, []string{"leased after a failure"}, ordered("b"))
	require.Equal(t, []string{"leased"}, ordered("c"))
	for _, kind := range []string{"parked", "parked after a failure"} {
		n, err := q.Unpark(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Dead}) {
		require.NoError(t, err)
		require.NoError(t, q.Retry(t.Context(), e.ID, true))
	}
	require.ElementsMatch(t, []string{"parked", "parked after a failure", "exhausted"}, ordered("b"))
	first := add(t, q, func(e *pawl.Envelope) { e.Queue = "a" })
	require.Greater(t, first.Seq, uint64(10), "it comes behind those of before")
	require.NoError(t, q.Close())

	q = openAt(t, path, at(48*time.Hour))
	for _, queue := range []string{"a", "b"} {
		for countsOf(t, q, queue).Ready == 0 || countsOf(t, q, queue).Delayed > 0 {
			_, err := q.Reap(t.Context()) // a pass of the scheduler, which promotes
			require.NoError(t, err)
		}
	}
	require.ElementsMatch(t, []string{"delayed", "k"}, ordered("a"))
	require.Equal(t, []string{"waits for its retry"}, ordered("b"))
}

// A reader changes no file, so it cannot read one of format 1, and says what to do.
func TestOlderFormatToRead(t *testing.T) {
	path := writeFormat1(t)
	_, err := OpenReader(path)
	require.ErrorIs(t, err, ErrOlderFormat)
	for _, says := range []string{path, "format 1", "format 2", "open it once to write"} {
		require.ErrorContains(t, err, says)
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(format1(t), b), "it was changed")
	lockFree(t, path)
}

// An app's own database with a queue of format 1 in it is brought to this format too.
func TestUpgradeOver(t *testing.T) {
	path := writeFormat1(t)
	withBolt(t, path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("app")); return err })
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	q, err := Over(db, at(0))
	require.NoError(t, err)
	require.Equal(t, pawl.Counts{Ready: 3, Delayed: 1}, countsOf(t, q, "a"))
	require.NoError(t, q.Close())
	require.NoError(t, db.Close())
	checkFile(t, path)
}

// addBacklog adds ready jobs to queue a of a file of format 1: first runs and retries in
// turns, of which some crashed.
func addBacklog(t *testing.T, path string, jobs int) {
	t.Helper()
	withBolt(t, path, func(tx *bbolt.Tx) error {
		root := tx.Bucket(bucketRoot)
		records, ready, history, queues := root.Bucket(bucketJobs), root.Bucket(bucketReady), root.Bucket(bucketHistory), root.Bucket(bucketQueues)
		start := time.Unix(1e9, 0)
		for n := range jobs {
			e := &pawl.Envelope{
				ID: pawl.NewID(start), Kind: "k", Origin: "a", Queue: "a", Seq: records.Sequence() + 1,
				Created: start, NotBefore: start.Add(time.Duration(n)), Attempts: n % 2, Failures: n % 2, Crashes: n % 3,
			}
			key := readyKey(nil, 1, e)
			key[4] = byte(e.Crashes)
			row := indexRow{e.ID, stored{Envelope: e}.flags()}
			err := errors.Join(records.SetSequence(e.Seq), records.Put(e.ID[:], pawl.AppendRecord(nil, e, 0)), ready.Put(key, seal(key, row.append(nil))))
			if key := historyKey(nil, e.ID, 0); e.Failures > 0 {
				err = errors.Join(err, history.Put(key, seal(key, appendFailure(nil, pawl.Failure{Attempt: 1, At: start}))))
			}
			if err != nil {
				return err
			}
		}
		key := numberKey(nil, 1)
		row, err := unseal(key, queues.Get(key), -1)
		require.NoError(t, err)
		row = bytes.Clone(row)
		binary.BigEndian.PutUint64(row, binary.BigEndian.Uint64(row)+uint64(jobs)) // how many are ready
		return queues.Put(key, seal(key, row))
	})
}

// Retries that lie among first runs come into lanes of their own, and so do those that
// crashed; no row is lost on the way.
func TestUpgradeSeparatesRetries(t *testing.T) {
	path := writeFormat1(t)
	const jobs = 6_000
	addBacklog(t, path, jobs)
	q, err := Open(path, at(0))
	require.NoError(t, err)
	require.Equal(t, jobs+3, countsOf(t, q, "a").Ready)
	require.NoError(t, q.Close())
	checkFile(t, path) // every row is where its record says
}
