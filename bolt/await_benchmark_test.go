package bolt_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/internal/withid"
)

// BenchmarkAwait measures how long after the call of an ack with a result its waiter has the result, on a queue
// that idles in between. It is on the disk of the folder for temporary files. Each round also measures a lone
// commit: one of bbolt alone, in a file beside it, after the same idle time. The metrics are the percentiles of the
// waiter, in lone commits of the same percentile.
func BenchmarkAwait(b *testing.B) {
	const idle = 5 * time.Millisecond
	folder := b.TempDir()
	q := openAt(b, filepath.Join(folder, "jobs.db"))
	defer q.Close()
	alone, err := bbolt.Open(filepath.Join(folder, "alone.db"), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer alone.Close()
	row := bytes.Repeat([]byte("x"), 100)
	commit := func() {
		err := alone.Update(func(tx *bbolt.Tx) error {
			rows, err := tx.CreateBucketIfNotExists([]byte("rows"))
			if err != nil {
				return err
			}
			return rows.Put([]byte("key"), row)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	commit()
	var waits, commits []time.Duration
	for b.Loop() {
		e := mail
		e.Retain = time.Hour
		if err := withid.Enqueue(b.Context(), q, &e); err != nil {
			b.Fatal(err)
		}
		l := lease(b, q, 1)[0]
		waited := make(chan time.Time)
		go func() {
			if ended, err := q.Await(b.Context(), l.ID); err != nil || !bytes.Equal(ended.Result, row) {
				b.Error("no result", err)
			}
			waited <- time.Now()
		}()
		time.Sleep(idle) // the call waits by then
		began := time.Now()
		ack := l.Ack()
		ack.Result = row
		if err := q.Settle(b.Context(), ack); err != nil {
			b.Fatal(err)
		}
		waits = append(waits, (<-waited).Sub(began))
		time.Sleep(idle)
		began = time.Now()
		commit()
		commits = append(commits, time.Since(began))
	}
	slices.Sort(waits)
	slices.Sort(commits)
	for name, percent := range map[string]int{"p50": 50, "p99": 99} {
		at := (len(waits) - 1) * percent / 100
		b.ReportMetric(waits[at].Seconds()/commits[at].Seconds(), name+"-commits")
		b.ReportMetric(float64(waits[at].Microseconds())/1000, name+"-ms")
	}
}
