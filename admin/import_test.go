package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Rule: jobs come in the order of their sequences, wherever they stand in the export, and
// in that of their lines where they have none.
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

// numbersInOrder are the numbers of simple jobs in the order of their sequences.
func numbersInOrder(q *bolt.Queue, t *testing.T) (numbers []int) {
	t.Helper()
	for _, text := range idsInOrder(jobsIn(t, q)) {
		id, err := pawl.ParseID(text)
		require.NoError(t, err)
		numbers = append(numbers, int(id[13])<<16|int(id[14])<<8|int(id[15]))
	}
	return numbers
}

// Rule: what is stored at once fits into a request to a running app, but for a job that is
// larger alone; and all together is all.
func TestImportPortions(t *testing.T) {
	from := simpleQueue(t, 2500, func(i int, e *pawl.Envelope) {
		switch i {
		case 0, 1200, 2499:
			e.Payload = bytes.Repeat([]byte{0xff}, 3<<20)
		default:
			e.Payload = bytes.Repeat([]byte{0xff}, i%3000)
		}
	})
	to := transferQueue(t)
	w := &watched{Admin: Of(to)}
	imported, err := Import(t.Context(), w, strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.EqualValues(t, 2500, imported.Jobs)
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

// Rule: at most MaxIDs jobs, and as many keys, are stored at once, however small.
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
	for _, size := range w.sizes {
		require.LessOrEqual(t, size, portionBytes)
	}
}

// Rule: jobs of one unique key that stand beside each other in a queue are stored, also where
// a portion ends between them.
func TestImportOfJobsThatShareAUniqueKey(t *testing.T) {
	share := func(state pawl.State, blocked ...pawl.State) func(int, *pawl.Envelope) {
		return func(i int, e *pawl.Envelope) {
			if e.State = state; i%1000 == 700 {
				e.UniqueKey, e.UniqueIn = "shared", blocked
			}
			if e.Payload = make([]byte, 500); state == pawl.Dead {
				e.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: e.Created}
			}
		}
	}
	for _, c := range []struct {
		rule   string
		change func(int, *pawl.Envelope)
		moved  bool
	}{
		{"two were leased when the third came", share(pawl.Leased, pawl.Ready), true},
		{"all are ready", share(pawl.Ready), true},
		{"all are dead and keep nobody out", share(pawl.Dead), false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			from, to := simpleQueue(t, 3000, c.change), transferQueue(t)
			imported, err := Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
			require.NoError(t, err)
			require.EqualValues(t, 3000, imported.Jobs)
			requireSameJobs(t, from, to)
			want := 2000
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

// Rule: without KeepIDs jobs get new IDs and keep all else, so an export can be imported
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

// Rule: a signature names its job's ID, so a signed job is refused rather than stored to die.
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

// Rule: a job that the target has ends an import that keeps IDs, before anything is stored,
// and SkipExisting leaves such jobs out. That holds for few jobs and for many, which are
// looked for in another way, and for jobs of the target that cannot be read.
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
				require.Equal(t, Imported{Version: 1, Checked: int64(n)}, imported)
			}
			require.Empty(t, w.changes)

			imported, err := Import(t.Context(), w, strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
			require.NoError(t, err)
			require.Equal(t, Imported{Version: 1, Checked: int64(n), Jobs: int64(n - 2), Skipped: 2}, imported)
			require.Len(t, jobsIn(t, to), n+1)
		})
	}
}

// Rule: an import that ended anywhere goes on with KeepIDs and SkipExisting as if nothing had
// happened.
func TestImportIsResumed(t *testing.T) {
	from := simpleQueue(t, 3000, func(i int, e *pawl.Envelope) {
		if e.Payload = make([]byte, 500); i%2 == 0 {
			e.State = pawl.Parked
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

// Rule: where the target refuses one job of a portion, the error names that job, those
// before it are stored and no other.
func TestImportNamesTheJobThatIsRefused(t *testing.T) {
	from := simpleQueue(t, 100, func(i int, e *pawl.Envelope) {
		if i == 41 || i == 77 {
			e.UniqueKey = fmt.Sprint("taken", i)
		}
	})
	export := exportOf(t, Of(from))
	to := transferQueue(t)
	require.NoError(t, to.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", UniqueKey: "taken41"}, &pawl.Envelope{Kind: "k", UniqueKey: "taken77"}))
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

// Rule: a group that shares a unique key which another job of the target has is refused as
// one; with SkipExisting all are left out that cannot be stored.
func TestImportOfAGroupThatIsRefused(t *testing.T) {
	from := simpleQueue(t, 9, func(i int, e *pawl.Envelope) {
		if i%3 == 1 {
			e.UniqueKey = "taken"
		}
	})
	export := exportOf(t, Of(from))
	to := transferQueue(t)
	require.NoError(t, to.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", UniqueKey: "taken"}))
	imported, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true})
	require.ErrorContains(t, err, "line 4: job 01000000-0000-7000-8000-000000000002 and 2 that go with it: not stored")
	require.EqualValues(t, 1, imported.Jobs)
	imported, err = Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true, SkipExisting: true})
	require.NoError(t, err)
	require.Equal(t, Imported{Version: 1, Checked: 9, Jobs: 5, Skipped: 4}, imported)
}

// Rule: a payload that only this target does not take ends the import at its job.
func TestImportOfAPayloadThatIsTooLarge(t *testing.T) {
	from := simpleQueue(t, 5, func(i int, e *pawl.Envelope) { e.Payload = make([]byte, i*100) })
	to, err := bolt.Open(t.TempDir()+"/jobs.db", &bolt.Options{MaxPayload: 250})
	require.NoError(t, err)
	defer to.Close()
	imported, err := Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
	require.ErrorContains(t, err, "line 6: job")
	require.EqualValues(t, 3, imported.Jobs)
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

// Rule: a dry run checks all and changes nothing.
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

// Rule: progress never falls, never passes its total, and ends at it.
func TestImportProgress(t *testing.T) {
	from := simpleQueue(t, 3000, func(_ int, e *pawl.Envelope) { e.Payload = make([]byte, 1000) })
	export := exportOf(t, Of(from))
	for _, dry := range []bool{false, true} {
		var told []int64
		_, err := Import(t.Context(), Of(transferQueue(t)), strings.NewReader(export), &ImportOptions{KeepIDs: true, DryRun: dry,
			Progress: func(done, total int64) {
				require.EqualValues(t, 2*len(export), total)
				require.LessOrEqual(t, done, total)
				if len(told) > 0 {
					require.GreaterOrEqual(t, done, told[len(told)-1])
				}
				told = append(told, done)
			}})
		require.NoError(t, err)
		require.Greater(t, len(told), 5)
		require.EqualValues(t, 2*len(export), told[len(told)-1])
	}
}

// Rule: an import ends when its context does, in the check and between two portions.
func TestImportEndsWithItsContext(t *testing.T) {
	from := simpleQueue(t, 3000, nil)
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

// changing is an export to which something else writes between the check and the storing.
type changing struct {
	*strings.Reader
	then  string
	seeks int
}

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	if c.seeks++; c.seeks == 3 { // its end, its beginning, the first line that is read again
		c.Reader = strings.NewReader(c.then)
	}
	return c.Reader.Seek(offset, whence)
}

// Rule: an export that changes while it is imported is told of, and no line that was not
// checked is stored.
func TestImportOfAnExportThatChanges(t *testing.T) {
	first, second := jobLine(simpleJob(1, nil)), jobLine(simpleJob(2, nil))
	export := exportLines(first, second)
	for rule, then := range map[string]string{
		"another job":     exportLines(first, jobLine(simpleJob(3, nil))),
		"a bad job":       exportLines(first, strings.Replace(second, `"ready"`, `"readx"`, 1)),
		"another line":    exportLines(first, `{"queue":{"name":"x","paused":false}}`),
		"no JSON":         exportLines(first, strings.Repeat("x", len(second))),
		"it was cut":      exportLines(first)[:60+len(first)],
		"it was emptied":  "",
		"it lost a queue": strings.Replace(export, "\n", "\n\n", 1),
	} {
		t.Run(rule, func(t *testing.T) {
			w := &watched{Admin: Of(transferQueue(t))}
			_, err := Import(t.Context(), w, &changing{Reader: strings.NewReader(export), then: then}, nil)
			require.Error(t, err)
			require.Regexp(t, regexp.MustCompile(`^import: line [123]: it is not what it was .*0 jobs were stored before$`), err.Error())
			require.Empty(t, w.changes)
		})
	}
}

// Rule: an input that cannot be read twice is refused with what to do, and Spool makes it
// one that can.
func TestImportOfAPipe(t *testing.T) {
	export := exportLines(jobLine(simpleJob(1, nil)))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = io.WriteString(w, export)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	to := transferQueue(t)
	_, err = Import(t.Context(), Of(to), r, nil)
	require.ErrorContains(t, err, "Spool")

	t.Setenv("TMPDIR", t.TempDir())
	spooled, err := Spool(r)
	require.NoError(t, err)
	imported, err := Import(t.Context(), Of(to), spooled, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, imported.Jobs)
	require.NoError(t, spooled.Close())
	entries, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Rule: a spool that fails leaves no file behind.
func TestSpoolThatFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Spool(io.MultiReader(strings.NewReader("a"), failing{}))
	require.ErrorIs(t, err, errWatched)
	entries, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, entries)

	t.Setenv("TMPDIR", "/nowhere")
	_, err = Spool(strings.NewReader("a"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errWatched }

// Rule: what a newer version says of a job besides is left out, and told; a newer sort of
// line is refused, and so is everything unknown in an export of this version.
func TestImportOfANewerVersion(t *testing.T) {
	job := strings.Replace(jobLine(simpleJob(1, nil)), `{"job":{`, `{"job":{"shade":"blue",`, 1)
	export := exportLines(job)
	newer := strings.Replace(export, `"pawl_export":1,`, `"pawl_export":2,"lamp":"on",`, 1)
	to := transferQueue(t)
	imported, err := Import(t.Context(), Of(to), strings.NewReader(newer), nil)
	require.NoError(t, err)
	require.Equal(t, 2, imported.Version)
	require.Len(t, jobsIn(t, to), 1)

	_, err = Import(t.Context(), Of(to), strings.NewReader(export), nil)
	require.ErrorContains(t, err, `line 2: json: unknown field "shade"`)
	_, err = Import(t.Context(), Of(to), strings.NewReader(strings.Replace(newer, `"shade"`, `"kind"`, 1)), nil)
	require.ErrorContains(t, err, `name "kind" twice`, "it is as strict about what it knows")
	_, err = Import(t.Context(), Of(to), strings.NewReader(strings.Replace(newer, `{"end"`, `{"lease":{}}`+"\n"+`{"end"`, 1)), nil)
	require.ErrorContains(t, err, "line 3: it has 0 of queue, job")
	require.Len(t, jobsIn(t, to), 1)
}

// Rule: dead letters and records that are retained come without being told as such again.
func TestImportIsNoNewDeath(t *testing.T) {
	var died, enqueued int
	to, err := bolt.Open(t.TempDir()+"/jobs.db", &bolt.Options{OnEvent: func(e pawl.Event) {
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
	require.NoError(t, errors.Join(to.Close()))
	require.Zero(t, died)
	require.Equal(t, 2, enqueued)
}
