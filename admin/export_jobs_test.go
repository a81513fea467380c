package admin

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/race"
)

// Rule: the form of an export is stable for other programs: header, queues, jobs, completed
// keys, the end.
func TestExportForm(t *testing.T) {
	q := transferQueue(t)
	until := time.Date(2999, 1, 1, 0, 0, 0, 5, time.UTC)
	job := simpleJob(1, func(e *pawl.Envelope) { e.Kind, e.Headers = "a<b\xff", map[string]string{"x": "y"} })
	require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{job}, []driver.Effect{{Kind: "k", Key: "\xff", Until: until}}))
	require.NoError(t, q.Pause(t.Context(), "later"))
	var b bytes.Buffer
	before := time.Now()
	exported, err := Export(t.Context(), Of(q), &b, nil)
	require.NoError(t, err)
	require.Equal(t, Exported{Queues: 2, Jobs: 1, Effects: 1}, exported)
	lines := strings.Split(b.String(), "\n")
	h, err := readHeader([]byte(lines[0]))
	require.NoError(t, err)
	require.WithinRange(t, h.At.Time, before.Truncate(0), time.Now())
	require.Equal(t, exportHeader{ExportVersion, h.At, Text(q.Path()), libraryVersion()}, h)
	require.Equal(t, []string{
		`{"queue":{"name":"default","paused":false}}`,
		`{"queue":{"name":"later","paused":true}}`,
		`{"job":{"id":"01000000-0000-7000-8000-000000000001","kind":{"base64":"YTxi/w=="},"queue":"default","origin":"default",` +
			`"state":"ready","reason":null,"priority":0,"sequence":1,"attempts":0,"max_retries":3,"failures":0,"crashes":0,` +
			`"created_at":"2026-03-01T09:00:00.000000001Z","not_before":"2026-03-01T09:00:00.000000001Z","deadline":null,` +
			`"leased_at":null,"died_at":null,"completed_at":null,"backoff_since":null,"cancelled":false,"unique_key":null,` +
			`"unique_in":null,"idempotency_key":null,"idempotency_ttl":null,"retain":null,"timeout":null,"policy":null,` +
			`"policy_data":null,"key_id":null,"signature":null,"headers":{"x":"y"},"last_error":null,` +
			`"payload":{"size_bytes":1,"encoding":"messagepack","value":null,"base64":"wA==","hex":null},"history":[],"history_dropped":0}}`,
		`{"effect":{"kind":"k","key":{"base64":"/w=="},"until":"2999-01-01T00:00:00.000000005Z"}}`,
		`{"end":{"queues":2,"jobs":1,"effects":1,"damaged":0,"runs":0,"schedules":0,"groups":0}}`,
		``,
	}, lines[1:])
}

// Rule: an export of some jobs has these jobs and their queues, but no keys, which belong to the
// whole queue.
func TestExportOfSomeJobs(t *testing.T) {
	q := simpleQueue(t, 9, func(i int, e *pawl.Envelope) {
		e.Queue = fmt.Sprint("q", i%3)
		if i%2 == 0 {
			e.State, e.Death = pawl.Dead, &pawl.Death{Reason: pawl.ReasonPermanent, At: e.Created}
		}
	})
	require.NoError(t, q.Restore(t.Context(), nil, []driver.Effect{{Kind: "k", Key: "x", Until: time.Now().Add(time.Hour)}}))
	for _, name := range []string{"q1", "empty"} {
		require.NoError(t, q.Pause(t.Context(), name))
	}
	for _, c := range []struct {
		rule   string
		filter Filter
		jobs   int64
		total  int64
		queues []string
	}{
		{"of a state", Filter{Filter: pawl.Filter{State: pawl.Dead}}, 5, 5, []string{"q0 false", "q1 true", "q2 false"}},
		{"of a queue", Filter{Filter: pawl.Filter{Queue: "q1"}}, 3, 3, []string{"q1 true"}},
		{"of a state of a queue", Filter{Filter: pawl.Filter{Queue: "q1", State: pawl.Ready}}, 2, 2, []string{"q1 true"}},
		{"of a kind that is not there", Filter{Filter: pawl.Filter{Kind: "other"}}, 0, -1, nil},
		{"by time", Filter{Since: time.Date(2026, 3, 1, 9, 0, 0, 9, time.UTC)}, 1, -1, []string{"q2 false"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var b bytes.Buffer
			var first, last [2]int64
			calls := 0
			exported, err := Export(t.Context(), Of(q), &b, &ExportOptions{Filter: c.filter, Progress: func(done, total int64) {
				if calls++; calls == 1 {
					first = [2]int64{done, total}
				}
				last = [2]int64{done, total}
			}})
			require.NoError(t, err)
			require.Equal(t, Exported{Queues: int64(len(c.queues)), Jobs: c.jobs}, exported)
			require.Equal(t, c.total, first[1])
			require.Equal(t, [2]int64{c.jobs, c.jobs}, last)
			var queues []string
			for _, text := range strings.Split(b.String(), "\n")[1:] {
				if text == "" {
					continue
				}
				l, err := readLine([]byte(text), false)
				require.NoError(t, err)
				if l.Queue != nil {
					queues = append(queues, fmt.Sprint(l.Queue.Name, " ", l.Queue.Paused))
				}
				if l.Job != nil {
					require.Contains(t, strings.Join(queues, ","), string(l.Job.Queue), "the queue stands before its jobs")
				}
			}
			require.ElementsMatch(t, c.queues, queues)
			_, err = Import(t.Context(), Of(transferQueue(t)), bytes.NewReader(b.Bytes()), &ImportOptions{KeepIDs: true})
			require.NoError(t, err)
		})
	}
}

// givenPages is an Admin with given lists.
type givenPages struct {
	Admin
	pages [][]pawl.Listed
}

func (p *givenPages) List(_ context.Context, q Query) (Page, error) {
	var n int
	_, _ = fmt.Sscan(q.After, &n)
	page := Page{Jobs: p.pages[n]}
	if n+1 < len(p.pages) {
		page.Next = fmt.Sprint(n + 1)
	}
	return page, nil
}

// Rule: a job that moved during the export, and is listed twice, is exported once: a duplicate
// ID would make the whole export worthless. Empty pages are skipped, and progress does not
// decrease if there are more jobs than at the beginning.
func TestExportOfJobsThatMove(t *testing.T) {
	first, second := simpleJob(1, nil), simpleJob(2, nil)
	a := &givenPages{Of(transferQueue(t)), [][]pawl.Listed{
		{{Job: first}}, {}, {{Job: second}, {Job: first}}, {}, {{Job: &pawl.Envelope{}, Err: pawl.ErrCorrupt}, {Job: &pawl.Envelope{}, Err: pawl.ErrCorrupt}},
	}}
	var b bytes.Buffer
	most := int64(0)
	exported, err := Export(t.Context(), a, &b, &ExportOptions{Filter: Filter{Filter: pawl.Filter{State: pawl.Ready}},
		Progress: func(done, total int64) {
			require.GreaterOrEqual(t, done, most)
			require.GreaterOrEqual(t, total, done)
			most = done
		}})
	require.NoError(t, err)
	require.EqualValues(t, 2, exported.Jobs)
	require.EqualValues(t, 2, exported.Damaged, "rows that nobody can read the ID of are two")
	require.EqualValues(t, 4, most)
	_, err = Import(t.Context(), Of(transferQueue(t)), bytes.NewReader(b.Bytes()), nil)
	require.NoError(t, err)
}

// Rule: an unreadable job or key is reported in the export and in the result, and everything
// else is exported.
func TestExportOfADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	var jobs []*pawl.Envelope
	var effects []driver.Effect
	for n := range 300 {
		jobs = append(jobs, simpleJob(n+1, nil))
		effects = append(effects, driver.Effect{Kind: "k", Key: fmt.Sprintf("%03d", n), Until: time.Now().Add(time.Hour)})
	}
	require.NoError(t, q.Restore(t.Context(), jobs, effects))
	require.NoError(t, q.Close())
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for bucket, places := range map[string][]int{"jobs": {7, 250}, "effects": {5, 299}} {
			b := tx.Bucket([]byte("pawl")).Bucket([]byte(bucket))
			var keys [][]byte
			_ = b.ForEach(func(k, _ []byte) error { keys = append(keys, bytes.Clone(k)); return nil })
			for _, i := range places {
				value := bytes.Clone(b.Get(keys[i]))
				value[len(value)-1] ^= 1
				if err := b.Put(keys[i], value); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())

	var b bytes.Buffer
	a := offlineFile(path, nil)
	defer a.Close()
	exported, err := Export(t.Context(), a, &b, nil)
	require.NoError(t, err)
	damage := exported.Damage
	exported.Damage = nil
	require.Equal(t, Exported{Queues: 1, Jobs: 298, Effects: 298, Damaged: 4}, exported)
	require.Len(t, damage, 4)
	require.Equal(t, jobs[7].ID, damage[0].ID)
	require.Equal(t, jobs[250].ID, damage[1].ID)
	for _, d := range damage {
		require.ErrorIs(t, d.Err, pawl.ErrCorrupt)
		require.Contains(t, b.String(), `{"damaged":{"id":`)
	}
	require.Contains(t, b.String(), `{"damaged":{"id":"`+jobs[7].ID.String()+`","error":"`)
	require.Equal(t, 2, strings.Count(b.String(), `{"damaged":{"id":null,`))

	imported, err := Import(t.Context(), Of(transferQueue(t)), bytes.NewReader(b.Bytes()), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.Equal(t, Imported{Version: ExportVersion, Checked: 298, Damaged: 4, Jobs: 298, Effects: 298}, imported)
}

// Rule: the result describes a bounded number of damaged items.
func TestExportOfMuchDamage(t *testing.T) {
	list := make([]pawl.Listed, 3*MaxDamage)
	for i := range list {
		list[i] = pawl.Listed{Job: simpleJob(i+1, nil), Err: pawl.ErrCorrupt}
	}
	exported, err := Export(t.Context(), &givenPages{Of(transferQueue(t)), [][]pawl.Listed{list}}, new(bytes.Buffer), nil)
	require.NoError(t, err)
	require.EqualValues(t, 3*MaxDamage, exported.Damaged)
	require.Len(t, exported.Damage, MaxDamage)
}

// limited is a disk with room for that many bytes.
type limited int

func (l *limited) Write(b []byte) (int, error) {
	if *l -= limited(len(b)); *l < 0 {
		return 0, errWatched
	}
	return len(b), nil
}

// Rule: a nil error means that w received everything, whichever of its writes fails.
func TestExportToAFullDisk(t *testing.T) {
	q := simpleQueue(t, 300, func(_ int, e *pawl.Envelope) { e.Payload = make([]byte, 300) })
	size := len(exportOf(t, Of(q)))
	for _, room := range []int{0, 1, size / 2, size - 1} {
		disk := limited(room)
		_, err := Export(t.Context(), Of(q), &disk, nil)
		require.ErrorIs(t, err, errWatched, "%d of %d bytes", room, size)
	}
	disk := limited(size)
	_, err := Export(t.Context(), Of(q), &disk, nil)
	require.NoError(t, err)
}

// Rule: an export ends with its context, and an interrupted export is invalid.
func TestExportEndsWithItsContext(t *testing.T) {
	q := simpleQueue(t, 2*MaxLimit, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var b bytes.Buffer
	_, err := Export(ctx, Of(q), &b, &ExportOptions{Progress: func(int64, int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, b.String(), `{"end"`)

	_, err = Export(t.Context(), offlineFile(filepath.Join(t.TempDir(), "none.db"), nil), &b, nil)
	require.Error(t, err)
}

// Rule: while the queue works, every job that exists throughout is exported once.
func TestExportOfAQueueAtWork(t *testing.T) {
	const jobs = MaxLimit + 100
	q := simpleQueue(t, jobs, nil)
	stop := make(chan struct{})
	worked := make(chan error, 1)
	go func() {
		worked <- func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				leases, err := q.Fetch(context.Background(), pawl.Request{Max: 100})
				if err != nil {
					return err
				}
				for i, l := range leases {
					if err := q.Settle(context.Background(), l.Nack(time.Duration(i%3)*time.Microsecond, nil)); err != nil {
						return err
					}
				}
			}
		}()
	}()
	for range race.Fewer(3) {
		export := exportOf(t, Of(q))
		to := transferQueue(t)
		_, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true})
		require.NoError(t, err)
		require.Len(t, jobsIn(t, to), jobs)
	}
	close(stop)
	require.NoError(t, <-worked)
}
