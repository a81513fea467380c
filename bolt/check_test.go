package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
)

// checkAt returns the result of Check on a file that no process has open.
func checkAt(t *testing.T, path string) error {
	t.Helper()
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	return r.Check(t.Context())
}

// Rule: Check finds any missing row of a queue and any flipped bit in a row.
func TestCheckMissesNoRow(t *testing.T) {
	race.SkipLone(t)
	for _, s := range []sample{newSampleNow(t), newKeyed(t)} {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		require.NoError(t, os.WriteFile(path, s.bytes, 0o600))
		require.NoError(t, checkAt(t, path))
		for _, row := range rowsOf(t, path) {
			if row.bucket == string(bucketMeta) {
				continue // Open checks it
			}
			for what, change := range map[string]func(b *bbolt.Bucket) error{
				"missing": func(b *bbolt.Bucket) error { return b.Delete(row.key) },
				"flipped": func(b *bbolt.Bucket) error {
					v := bytes.Clone(row.value)
					v[len(v)/2] ^= 4
					return b.Put(row.key, v)
				},
				"under another key": func(b *bbolt.Bucket) error {
					k := bytes.Clone(row.key)
					k[len(k)-1] ^= 1
					return errors.Join(b.Delete(row.key), b.Put(k, row.value))
				},
			} {
				require.NoError(t, os.WriteFile(path, s.bytes, 0o600))
				withBolt(t, path, func(tx *bbolt.Tx) error { return change(tx.Bucket(bucketRoot).Bucket([]byte(row.bucket))) })
				if row.bucket == string(bucketUnique) && what == "missing" {
					continue // another job may have taken it and be gone
				}
				require.ErrorIs(t, checkAt(t, path), pawl.ErrCorrupt, "%s, row %x: %s", row.bucket, row.key, what)
			}
		}
	}
}

// Rule: Check ends with its context, and works on an active queue.
func TestCheckOfAQueueAtWork(t *testing.T) {
	q := openTest(t, nil)
	add(t, q, nil)
	leaseOne(t, q)
	require.NoError(t, q.Check(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, q.Check(ctx), context.Canceled)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		id := pawl.ID{1}
		b := tx.Bucket(bucketRoot).Bucket(bucketLeased)
		return b.Put(id[:], seal(id[:], leaseRow{token: 1, line: line{1, 2}}.append(nil)))
	}))
	err := q.Check(t.Context())
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.ErrorContains(t, err, "a leased row leads to job 01000000-0000-0000-0000-000000000000, which is not there")
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		id := pawl.ID{1}
		return tx.Bucket(bucketRoot).Bucket(bucketLeased).Delete(id[:])
	}))
}

// Rule: the number of reported findings is limited.
func TestCheckReportsAHundredFindings(t *testing.T) {
	q := openTest(t, nil)
	fill(t, q, 500, "q")
	var rows [][]byte
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucketReady)
		return b.ForEach(func(k, v []byte) error {
			rows = append(rows, bytes.Clone(k), bytes.Clone(v))
			return nil
		})
	}))
	set := func(change func(b *bbolt.Bucket, k, v []byte) error) {
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) (err error) {
			b := tx.Bucket(bucketRoot).Bucket(bucketReady)
			for i := 0; i < len(rows); i += 2 {
				err = errors.Join(err, change(b, rows[i], rows[i+1]))
			}
			return err
		}))
	}
	set(func(b *bbolt.Bucket, k, _ []byte) error { return b.Delete(k) })
	err := q.Check(t.Context())
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.Equal(t, maxViolations-1, bytes.Count([]byte(err.Error()), []byte("\n")))
	set(func(b *bbolt.Bucket, k, v []byte) error { return b.Put(k, v) })
}

// Rule: a job whose unique key leads nowhere is not an error. Another job may have taken the
// key while this job was in a state that did not block the other, and be gone.
func TestCheckOfAKeyThatNobodyHas(t *testing.T) {
	q := openTest(t, nil)
	unique := func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = "key", []pawl.State{pawl.Ready} }
	add(t, q, unique)
	first := leaseOne(t, q)
	add(t, q, unique)
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
	require.NoError(t, q.Settle(t.Context(), first.Release()))
	require.NoError(t, q.Check(t.Context()))
}

// Rule: Check finds rows of a job that match their checksums and contradict the record.
func TestCheckFindsContradictions(t *testing.T) {
	sound := soundWithOneJob(t)
	for says, change := range map[string]func(root *bbolt.Bucket, k, v []byte) error{
		"flags": func(root *bbolt.Bucket, k, v []byte) error {
			row, err := parseIndexRow(k, v)
			row.flags ^= hasHistory
			return errors.Join(err, root.Bucket(bucketReady).Put(k, seal(k, row.append(nil))))
		},
		"payload lie apart": func(root *bbolt.Bucket, k, v []byte) error {
			row, err := parseIndexRow(k, v)
			return errors.Join(err, root.Bucket(bucketPayloads).Put(row.id[:], seal(row.id[:], []byte("another"))))
		},
	} {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		require.NoError(t, os.WriteFile(path, sound, 0o600))
		require.NoError(t, checkAt(t, path))
		withBolt(t, path, func(tx *bbolt.Tx) error {
			root := tx.Bucket(bucketRoot)
			k, v := root.Bucket(bucketReady).Cursor().First()
			return change(root, bytes.Clone(k), bytes.Clone(v))
		})
		require.ErrorContains(t, checkAt(t, path), says)
	}
}

// Rule: Check compares what the row that says where a job is repeats with the job's record.
func TestCheckOfRepeatedRows(t *testing.T) {
	q := openTest(t, nil)
	add(t, q, nil)
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	add(t, q, func(e *pawl.Envelope) { e.Delay = time.Hour })
	add(t, q, nil)
	leaseOne(t, q)
	for _, test := range []struct {
		bucket []byte
		change func(k, v []byte) []byte
		says   string
	}{
		{bucketLeased, func(k, v []byte) []byte {
			r, err := parseLeaseRow(k, v)
			require.NoError(t, err)
			r.line.kind++
			return r.append(nil)
		}, "counts for kind"},
		{bucketLeased, func(k, v []byte) []byte {
			r, err := parseLeaseRow(k, v)
			require.NoError(t, err)
			r.lane++
			return r.append(nil)
		}, "was leased from lane"},
		{bucketFailed, func(k, v []byte) []byte {
			r, err := parseEndedRow(k, v)
			require.NoError(t, err)
			r.line.kind++
			return r.append(nil)
		}, "counts for kind"},
		{bucketDelayed, func(k, v []byte) []byte {
			r, err := parseDelayedRow(k, v)
			require.NoError(t, err)
			r.ready = bytes.Clone(r.ready)
			r.ready[0]++
			return r.append(nil, k)
		}, "would be promoted to the wrong place"},
	} {
		var key, old []byte
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucketRoot).Bucket(test.bucket)
			k, v := b.Cursor().First()
			key, old = bytes.Clone(k), bytes.Clone(v)
			return b.Put(key, seal(key, test.change(key, old)))
		}))
		require.ErrorContains(t, q.Check(t.Context()), test.says)
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketRoot).Bucket(test.bucket).Put(key, old)
		}))
	}
}

// soundWithOneJob returns the bytes of a file with one ready job.
func soundWithOneJob(t *testing.T) []byte {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	add(t, q, func(*pawl.Envelope) {})
	require.NoError(t, q.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}
