package admin

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
)

// Rule: jobs are stored in the order of their sequences, wherever they are in the export, and
// without sequences in the order of their lines.
func TestImportOrder(t *testing.T) {
	with := func(n int, seq uint64) string {
		return jobLine(simpleJob(n, func(e *pawl.Envelope) { e.Seq = seq }))
	}
	to := transferQueue(t)
	_, err := Import(t.Context(), Of(to), strings.NewReader(exportLines(
		with(1, 1<<63), with(2, 7), with(9, 0), with(4, 3), with(3, 0), with(5, 4))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.Equal(t, []int{9, 3, 4, 5, 2, 1}, numbersInOrder(to, t))
}

// numbersInOrder returns the numbers of simple jobs in the order of their sequences.
func numbersInOrder(q *bolt.Queue, t *testing.T) (numbers []int) {
	t.Helper()
	for _, text := range idsInOrder(jobsIn(t, q)) {
		id, err := pawl.ParseID(text)
		require.NoError(t, err)
		numbers = append(numbers, int(id[13])<<16|int(id[14])<<8|int(id[15]))
	}
	return numbers
}

// Rule: a portion fits into a request to a running app, except a single larger job; and no job
// is lost.
func TestImportPortions(t *testing.T) {
	race.SkipLone(t)
	from := simpleQueue(t, 1300, func(i int, e *pawl.Envelope) {
		switch i {
		case 0, 600, 1299:
			e.Payload = bytes.Repeat([]byte{0xff}, 1<<20+1)
		default:
			e.Payload = bytes.Repeat([]byte{0xff}, i%3000)
		}
	})
	to := transferQueue(t)
	w := &watched{Admin: Of(to)}
	imported, err := Import(t.Context(), w, strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.EqualValues(t, 1300, imported.Jobs)
	alone := 0
	for i, change := range w.changes {
		if w.sizes[i] > 1<<20 {
			alone++
			require.Equal(t, "restore 1 jobs, 0 effects", change)
		}
	}
	require.Equal(t, 3, alone, "the large ones are too large for any portion")
	require.Less(t, len(w.changes), 20, "and the others share portions")
	requireSameJobs(t, from, to)
}

// Rule: a portion has fewer than a thousand jobs, or keys, however small they are.
func TestImportPortionsOfSmallLines(t *testing.T) {
	var jobs []string
	for n := range 2100 {
		jobs = append(jobs, fmt.Sprintf(`{"job":{"kind":"k","state":"ready","sequence":%d}}`, n))
	}
	for n := range 2100 {
		jobs = append(jobs, fmt.Sprintf(`{"effect":{"kind":"k","key":"%d","until":"2999-01-01T00:00:00Z"}}`, n))
	}
	w := &watched{}
	_, err := Import(t.Context(), w, strings.NewReader(exportLines(jobs...)), nil)
	require.NoError(t, err)
	require.Len(t, w.changes, 6)
	for i, size := range w.sizes {
		var jobs, effects int
		_, err := fmt.Sscanf(w.changes[i], "restore %d jobs, %d effects", &jobs, &effects)
		require.NoError(t, err)
		require.Less(t, jobs+effects, 1000)
		require.LessOrEqual(t, size, portionBytes)
	}
}

// Rule: jobs that share a unique key in a queue are stored, even if a portion ends between them.
func TestImportOfJobsThatShareAUniqueKey(t *testing.T) {
	share := func(state pawl.State, blocked ...pawl.State) func(int, *pawl.Envelope) {
		return func(i int, e *pawl.Envelope) {
			if e.State = state; i%995 == 10 { // one in each portion
				e.UniqueKey, e.UniqueIn = "shared", blocked
			}
			if e.Payload = make([]byte, 50); state == pawl.Dead {
				e.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: e.Created}
			}
		}
	}
	cases := []struct {
		rule   string
		change func(int, *pawl.Envelope)
		moved  bool
	}{
		{"two were leased when the third came", share(pawl.Leased, pawl.Ready), true},
		{"all are ready", share(pawl.Ready), true},
		{"all are dead and keep nobody out", share(pawl.Dead), false},
	}
	for _, c := range cases[:race.Fewer(len(cases))] { // one goroutine imports all
		t.Run(c.rule, func(t *testing.T) {
			from, to := simpleQueue(t, 2010, c.change), transferQueue(t)
			imported, err := Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
			require.NoError(t, err)
			require.EqualValues(t, 2010, imported.Jobs)
			requireSameJobs(t, from, to)
			want := 2 * 995
			if c.moved {
				want = 2
			}
			var sequences []uint64
			for _, e := range jobsIn(t, to) {
				if e.UniqueKey != "" {
					sequences = append(sequences, e.Seq)
				}
			}
			require.EqualValues(t, want, sequences[2]-sequences[0], "the third moves only where it must")
		})
	}
}

// Rule: no portion ends within a group, and groups do not make portions small.
func TestImportOfManyGroups(t *testing.T) {
	race.SkipLone(t)
	from, to := simpleQueue(t, 2010, func(i int, e *pawl.Envelope) {
		e.UniqueKey = fmt.Sprint("shared", i%470) // four or five of each
	}), transferQueue(t)
	w := &watched{Admin: Of(to)}
	imported, err := Import(t.Context(), w, strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.EqualValues(t, 2010, imported.Jobs)
	require.LessOrEqual(t, len(w.changes), 5)
	requireSameJobs(t, from, to)

	from, to = simpleQueue(t, 1100, func(_ int, e *pawl.Envelope) {
		e.UniqueKey, e.State, e.Payload = "one", pawl.Delayed, make([]byte, 1000)
		e.NotBefore, e.UniqueIn = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), []pawl.State{pawl.Ready}
	}), transferQueue(t)
	_, err = Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err, "a group that is larger than a portion, where nobody keeps others out")
	requireSameJobs(t, from, to)
}

// Rule: queues are paused, and keys count as done, before any job can be fetched.
func TestImportPausesFirst(t *testing.T) {
	w := &watched{Admin: Of(transferQueue(t))}
	imported, err := Import(t.Context(), w, strings.NewReader(exportLines(
		jobLine(simpleJob(1, nil)),
		`{"queue":{"name":"a","paused":false}}`,
		`{"effect":{"kind":"k","key":"x","until":"2999-01-01T00:00:00Z"}}`,
		jobLine(simpleJob(2, nil)),
		`{"queue":{"name":"default","paused":true}}`,
	)), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"pause default", "restore 0 jobs, 1 effects", "restore 2 jobs, 0 effects"}, w.changes)
	require.Equal(t, Imported{Version: 1, Checked: 2, Jobs: 2, Effects: 1, Paused: 1}, imported)
}

// Rule: a dry run checks everything and changes nothing.
func TestImportDryRun(t *testing.T) {
	w := &watched{Admin: Of(transferQueue(t))}
	opts := ImportOptions{DryRun: true, KeepIDs: true}
	lines := []string{`{"queue":{"name":"q","paused":true}}`, jobLine(simpleJob(1, nil)), `{"damaged":{"id":null,"error":"x"}}`}
	imported, err := Import(t.Context(), w, strings.NewReader(exportLines(lines...)), &opts)
	require.NoError(t, err)
	require.Equal(t, Imported{Version: 1, Checked: 1, Damaged: 1, Jobs: 1}, imported)
	_, err = Import(t.Context(), w, strings.NewReader(exportLines(append(lines, `{"job":{"kind":""}}`)...)), &opts)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.Empty(t, w.changes)
}

// Rule: progress never decreases, never exceeds its total, and ends at it.
func TestImportProgress(t *testing.T) {
	from := simpleQueue(t, 1100, func(_ int, e *pawl.Envelope) { e.Payload = make([]byte, 2000) })
	export := exportOf(t, Of(from))
	for _, dry := range []bool{false, true} {
		var reported []int64
		_, err := Import(t.Context(), &watched{Admin: Of(transferQueue(t))}, strings.NewReader(export), &ImportOptions{KeepIDs: true, DryRun: dry,
			Progress: func(done, total int64) {
				require.EqualValues(t, 2*len(export), total)
				require.LessOrEqual(t, done, total)
				if len(reported) > 0 {
					require.GreaterOrEqual(t, done, reported[len(reported)-1])
				}
				reported = append(reported, done)
			}})
		require.NoError(t, err)
		between := 0 // the check and the end of the storing
		for _, done := range reported {
			if done > int64(len(export)) && done < 2*int64(len(export)) {
				between++
			}
		}
		require.Greater(t, len(reported), 4)
		require.Equal(t, dry, between == 0)
		require.EqualValues(t, 2*len(export), reported[len(reported)-1])
	}
}

// Rule: an import ends when its context does, in the check and between two portions.
func TestImportEndsWithItsContext(t *testing.T) {
	from := simpleQueue(t, 1100, nil) // two portions
	export := exportOf(t, Of(from))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &watched{Admin: Of(transferQueue(t))}
	_, err := Import(ctx, w, strings.NewReader(export), nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, w.changes)

	ctx, cancel = context.WithCancel(t.Context())
	w.before = func(jobs []*pawl.Envelope) error { cancel(); return ctx.Err() }
	imported, err := Import(ctx, w, strings.NewReader(export), nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, imported.Jobs)
}

// Rule: importing dead jobs and retained records emits no new events for them.
func TestImportIsNoNewDeath(t *testing.T) {
	var died, enqueued int
	to, err := bolt.Open(memdir.New(t)+"/jobs.db", &bolt.Options{OnEvent: func(e pawl.Event) {
		switch e.Type {
		case pawl.EventDied:
			died++
		case pawl.EventEnqueued:
			enqueued++
		}
	}})
	require.NoError(t, err)
	_, err = Import(t.Context(), Of(to), strings.NewReader(exportLines(
		jobLine(simpleJob(1, func(e *pawl.Envelope) { e.State, e.Death = pawl.Dead, &pawl.Death{Reason: "r", At: e.Created} })),
		jobLine(simpleJob(2, func(e *pawl.Envelope) { e.State, e.Completed, e.Retain = pawl.Completed, time.Now(), time.Hour })),
	)), nil)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.Zero(t, died)
	require.Equal(t, 2, enqueued)
}
