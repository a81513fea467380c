package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: without KeepIDs, jobs get new IDs and keep everything else, so an export can be imported
// beside its jobs, and twice.
func TestImportUnderNewIDs(t *testing.T) {
	q := simpleQueue(t, 3, nil)
	export := exportOf(t, Of(q))
	for range 2 {
		imported, err := Import(t.Context(), Of(q), strings.NewReader(export), nil)
		require.NoError(t, err)
		require.EqualValues(t, 3, imported.Jobs)
	}
	jobs := jobsIn(t, q)
	require.Len(t, jobs, 9)
	for i, e := range jobs {
		want := *jobs[i%3]
		want.ID, want.Seq = e.ID, uint64(i+1)
		require.Equal(t, &want, e)
	}
}

// Rule: a signature covers its job's ID, so a signed job is refused instead of stored only to
// become dead.
func TestImportRefusesSignedJobsUnderNewIDs(t *testing.T) {
	to := transferQueue(t)
	line := jobLine(simpleJob(1, func(e *pawl.Envelope) { e.Signature = []byte{1} }))
	_, err := Import(t.Context(), Of(to), strings.NewReader(exportLines(line)), nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "line 2: job 01000000-0000-7000-8000-000000000001 is signed")
	require.ErrorContains(t, err, "KeepIDs")
	requireEmpty(t, to)
	_, err = Import(t.Context(), Of(to), strings.NewReader(exportLines(line)), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
}

// Rule: KeepIDs needs an ID; a job without one is imported under a new one.
func TestImportOfJobsWithoutIDs(t *testing.T) {
	to := transferQueue(t)
	export := exportLines(`{"job":{"kind":"k","state":"ready"}}`, `{"job":{"kind":"k","state":"ready"}}`)
	_, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "line 2: invalid id: there is none to keep")
	requireEmpty(t, to)
	_, err = Import(t.Context(), Of(to), strings.NewReader(export), nil)
	require.NoError(t, err)
	require.Len(t, jobsIn(t, to), 2)
}

// Rule: a job that the target has ends an import that keeps IDs, before anything is stored, and
// SkipExisting skips such jobs. This holds for few jobs and for many, which are looked up
// differently.
func TestImportOfExistingJobs(t *testing.T) {
	for _, n := range []int{10, MaxLimit + 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			from, to := simpleQueue(t, n, nil), transferQueue(t)
			export := exportOf(t, Of(from))
			theirs := []*pawl.Envelope{simpleJob(4, nil), simpleJob(7, nil), simpleJob(5000, nil)}
			require.NoError(t, to.Restore(t.Context(), theirs, nil))
			w := &watched{Admin: Of(to)}
			for _, dry := range []bool{false, true} {
				imported, err := Import(t.Context(), w, strings.NewReader(export), &ImportOptions{KeepIDs: true, DryRun: dry})
				require.ErrorIs(t, err, pawl.ErrConflict)
				require.ErrorContains(t, err, "line 6: job 01000000-0000-7000-8000-000000000004: conflict")
				require.ErrorContains(t, err, fmt.Sprintf("2 of %d jobs", n))
				require.ErrorContains(t, err, "nothing was stored")
				require.Equal(t, Imported{Version: ExportVersion, Checked: int64(n)}, imported)
			}
			require.Empty(t, w.changes)

			imported, err := Import(t.Context(), w, strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
			require.NoError(t, err)
			require.Equal(t, Imported{Version: ExportVersion, Checked: int64(n), Jobs: int64(n - 2), Skipped: 2}, imported)
			require.Len(t, jobsIn(t, to), n+1)
		})
	}
}

// Rule: an import that ended anywhere continues with KeepIDs and SkipExisting as if nothing had
// happened.
func TestImportIsResumed(t *testing.T) {
	race.SkipLone(t)
	from := simpleQueue(t, 2100, func(i int, e *pawl.Envelope) { // three portions
		if e.Payload = make([]byte, 50); i%2 == 0 {
			e.State = pawl.Delayed
		}
	})
	export := exportOf(t, Of(from))
	to := transferQueue(t)
	w := &watched{Admin: Of(to)}
	stored := int64(0)
	for round := 0; ; round++ {
		left := 1
		w.before = func([]*pawl.Envelope) error {
			if left--; left < 0 {
				return errWatched
			}
			return nil
		}
		imported, err := Import(t.Context(), w, strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
		require.Equal(t, stored, imported.Skipped)
		stored += imported.Jobs
		require.Len(t, jobsIn(t, to), int(stored), "the result says how many are stored")
		if err == nil {
			require.Greater(t, round, 2)
			break
		}
		require.ErrorIs(t, err, errWatched)
		require.ErrorContains(t, err, fmt.Sprintf("line %d: job", stored+3), "the first that is not stored, behind the header and the queue")
		require.ErrorContains(t, err, "perhaps not stored")
		require.ErrorContains(t, err, fmt.Sprintf("%d jobs were stored before: importing again with SkipExisting goes on", imported.Jobs))
	}
	requireSameJobs(t, from, to)
}

// Rule: if the target refuses one job of a portion, the error names that job, and exactly the
// jobs before it are stored.
func TestImportNamesTheJobThatIsRefused(t *testing.T) {
	from := simpleQueue(t, 100, func(i int, e *pawl.Envelope) {
		if i == 41 || i == 77 {
			e.UniqueKey = fmt.Sprint("taken", i)
		}
	})
	export := exportOf(t, Of(from))
	to := transferQueue(t)
	require.NoError(t, withid.Enqueue(t.Context(), to, &pawl.Envelope{Kind: "k", UniqueKey: "taken41"}, &pawl.Envelope{Kind: "k", UniqueKey: "taken77"}))
	imported, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true})
	require.ErrorIs(t, err, pawl.ErrConflict)
	require.ErrorContains(t, err, `line 44: job 01000000-0000-7000-8000-00000000002a: not stored`)
	require.ErrorContains(t, err, `has its unique key "taken41"; 41 jobs were stored before`)
	require.EqualValues(t, 41, imported.Jobs)
	require.Len(t, jobsIn(t, to), 43)

	imported, err = Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
	require.NoError(t, err)
	require.EqualValues(t, 41+2, imported.Skipped)
	require.EqualValues(t, 57, imported.Jobs)
	require.Len(t, jobsIn(t, to), 100)
}

// Rule: a group whose unique key another job of the target has is refused together; with
// SkipExisting all jobs that cannot be stored are skipped.
func TestImportOfAGroupThatIsRefused(t *testing.T) {
	from := simpleQueue(t, 9, func(i int, e *pawl.Envelope) {
		if i%3 == 1 {
			e.UniqueKey = "taken"
		}
	})
	export := exportOf(t, Of(from))
	to := transferQueue(t)
	require.NoError(t, withid.Enqueue(t.Context(), to, &pawl.Envelope{Kind: "k", UniqueKey: "taken"}))
	imported, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true})
	require.ErrorContains(t, err, "line 4: job 01000000-0000-7000-8000-000000000002 and 2 that go with it: not stored")
	require.EqualValues(t, 1, imported.Jobs)
	imported, err = Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
	require.NoError(t, err)
	require.Equal(t, Imported{Version: ExportVersion, Checked: 9, Jobs: 5, Skipped: 4}, imported)
}

// Rule: a payload that only this target refuses ends the import at its job.
func TestImportOfAPayloadThatIsTooLarge(t *testing.T) {
	from := simpleQueue(t, 5, func(i int, e *pawl.Envelope) { e.Payload = make([]byte, i*100) })
	to, err := bolt.Open(memdir.New(t)+"/jobs.db", &bolt.Options{MaxPayload: 250})
	require.NoError(t, err)
	defer to.Close()
	imported, err := Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
	require.ErrorContains(t, err, "line 6: job")
	require.EqualValues(t, 3, imported.Jobs)
}
