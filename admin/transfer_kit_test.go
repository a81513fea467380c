package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/schedule"
)

// transferQueue opens a queue in a folder of the test. It is checked and closed at the end.
func transferQueue(t testing.TB) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger(), MaxPayload: pawl.MaxBatchBytes, Lease: busy.Lease()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, q.Check(context.Background()))
		require.NoError(t, q.Close())
	})
	return q
}

// exportOf exports all of a queue.
func exportOf(t testing.TB, a Admin) string {
	t.Helper()
	var b bytes.Buffer
	_, err := Export(context.Background(), a, &b, nil)
	require.NoError(t, err)
	return b.String()
}

// jobsIn returns all jobs of a queue, in the order of their IDs.
func jobsIn(t testing.TB, q *bolt.Queue) (jobs []*pawl.Envelope) {
	t.Helper()
	for e, err := range q.Jobs(context.Background(), pawl.Filter{}) {
		require.NoError(t, err)
		jobs = append(jobs, e)
	}
	return jobs
}

// requireSameJobs requires that a queue has the jobs of another one, except for what Import
// documents: sequences are new and in the same order, and leased jobs are ready.
func requireSameJobs(t testing.TB, from, to *bolt.Queue) {
	t.Helper()
	want, got := jobsIn(t, from), jobsIn(t, to)
	require.Equal(t, idsInOrder(want), idsInOrder(got), "the order of the sequences")
	require.Len(t, got, len(want))
	for i, e := range want {
		if e.State == pawl.Leased {
			e.State, e.LeasedSince = pawl.Ready, time.Time{}
		}
		e.Seq, got[i].Seq = 0, 0
		require.Equal(t, e, got[i])
	}
}

// idsInOrder returns the IDs of jobs in the order of their sequences. It omits jobs that share
// their unique key with another, which are stored together.
func idsInOrder(jobs []*pawl.Envelope) (ids []string) {
	sorted, sharing := slices.Clone(jobs), make(map[[3]string]int)
	slices.SortFunc(sorted, func(a, b *pawl.Envelope) int { return cmp.Compare(a.Seq, b.Seq) })
	key := func(e *pawl.Envelope) [3]string { return [3]string{e.Queue, e.Kind, e.UniqueKey} }
	for _, e := range sorted {
		sharing[key(e)]++
	}
	for _, e := range sorted {
		if e.UniqueKey == "" || sharing[key(e)] == 1 {
			ids = append(ids, e.ID.String())
		}
	}
	return ids
}

// requireEmpty requires that nothing was stored.
func requireEmpty(t testing.TB, q *bolt.Queue) {
	t.Helper()
	s, err := q.Stats(context.Background())
	require.NoError(t, err)
	require.Empty(t, s.Queues)
	effects, _, err := q.Effects(context.Background(), "", 10)
	require.NoError(t, err)
	require.Empty(t, effects)
}

// simpleJob returns a job for Restore.
func simpleJob(n int, change func(*pawl.Envelope)) *pawl.Envelope {
	created := time.Date(2026, 3, 1, 9, 0, 0, n, time.UTC)
	e := &pawl.Envelope{
		ID:   pawl.ID{0: 1, 6: 0x70, 8: 0x80, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)},
		Kind: "k", Queue: "default", Origin: "default", State: pawl.Ready, MaxRetries: 3,
		Created: created, NotBefore: created, Payload: []byte{0xc0},
	}
	if change != nil {
		change(e)
	}
	return e
}

// simpleQueue returns a queue with n simple jobs.
func simpleQueue(t testing.TB, n int, change func(i int, e *pawl.Envelope)) *bolt.Queue {
	t.Helper()
	q := transferQueue(t)
	var jobs []*pawl.Envelope
	for i := range n {
		jobs = append(jobs, simpleJob(i+1, func(e *pawl.Envelope) {
			if change != nil {
				change(i, e)
			}
		}))
	}
	require.NoError(t, q.Restore(context.Background(), jobs, nil))
	return q
}

// exportLines joins lines into an export, and counts them in the last one.
func exportLines(lines ...string) string {
	var end exportEnd
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, `{"queue"`):
			end.Queues++
		case strings.HasPrefix(line, `{"job"`):
			end.Jobs++
		case strings.HasPrefix(line, `{"run"`) && strings.Contains(line, `"last":true`):
			end.Runs++
		case strings.HasPrefix(line, `{"schedule"`):
			end.Schedules++
		case strings.HasPrefix(line, `{"group"`):
			end.Groups++
		case strings.HasPrefix(line, `{"effect"`):
			end.Effects++
		case strings.HasPrefix(line, `{"damaged"`):
			end.Damaged++
		}
	}
	last, _ := json.Marshal(exportLine{End: &end})
	return `{"pawl_export":1,"at":null,"path":"","library":""}` + "\n" + strings.Join(append(lines, string(last)), "\n") + "\n"
}

// jobLine returns the line of a job.
func jobLine(e *pawl.Envelope) string {
	job := JobOf(e, PayloadBase64)
	line, err := json.Marshal(exportLine{Job: &job})
	if err != nil {
		panic(err)
	}
	return string(line)
}

// watched is an Admin that records its changes, and may fail them. Without an underlying Admin
// it discards them.
type watched struct {
	Admin
	changes []string
	sizes   []int // of the requests to restore jobs, in bytes
	before  func(jobs []*pawl.Envelope) error
}

func (w *watched) Schedules() Schedules {
	if w.Admin == nil {
		return noSchedules{w: w}
	}
	return w.Admin.Schedules()
}

// noSchedules has no schedules, and notes those that are stored.
type noSchedules struct {
	Schedules
	w *watched
}

func (noSchedules) Show(context.Context, string, int) (*Schedule, error) {
	return nil, schedule.ErrNotFound
}

func (n noSchedules) RestoreRows(_ context.Context, rows ...*schedule.Rows) error {
	n.w.changes = append(n.w.changes, fmt.Sprint("schedules ", len(rows)))
	return nil
}

var errWatched = errors.New("the disk is on fire")

func (w *watched) Pause(ctx context.Context, queue string) error {
	w.changes = append(w.changes, "pause "+queue)
	if w.Admin == nil {
		return nil
	}
	return w.Admin.Pause(ctx, queue)
}

func (w *watched) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if w.before != nil {
		if err := w.before(jobs); err != nil {
			return err
		}
	}
	w.changes = append(w.changes, fmt.Sprintf("restore %d jobs, %d effects", len(jobs), len(effects)))
	size := 0
	for _, e := range jobs {
		job := JobOf(e, PayloadBase64)
		text, _ := json.Marshal(job)
		size += len(text) + 1
	}
	if w.sizes = append(w.sizes, size); w.Admin == nil {
		return nil
	}
	return w.Admin.Restore(ctx, jobs, effects)
}
