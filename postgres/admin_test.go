package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// overHandler returns the Admin of a queue from another process.
func overHandler(t testing.TB, q *postgres.Queue) admin.Admin {
	t.Helper()
	h, err := admin.Handler(admin.Of(q), &admin.HandlerOptions{Token: "t", Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	a, err := admin.Dial(t.Context(), s.URL, &admin.DialOptions{Token: "t"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// everyState stores jobs in each state, whose kinds are their states, and returns them by kind.
func everyState(t testing.TB, q *postgres.Queue) map[string]pawl.ID {
	t.Helper()
	ids := make(map[string]pawl.ID)
	add := func(e *pawl.Envelope) {
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		ids[e.Kind] = e.ID
	}
	end := func(kind string, how func(l *pawl.Lease) pawl.Settlement) {
		leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{kind}, Max: 1})
		require.NoError(t, err)
		require.NoError(t, q.Settle(t.Context(), how(leases[0])))
	}
	dead := func(l *pawl.Lease) pawl.Settlement {
		return l.Abandon(pawl.ReasonPermanent, errors.New("bad gateway 502"))
	}
	for _, kind := range []string{"dead", "dead too"} {
		add(&pawl.Envelope{Kind: kind, Payload: mustEncode(t, map[string]any{"user": kind})})
		end(kind, dead)
	}
	add(&pawl.Envelope{Kind: "completed", Retain: time.Hour, IdempotencyKey: "once"})
	end("completed", (*pawl.Lease).Ack)
	add(&pawl.Envelope{Kind: "delayed", Delay: time.Hour, Headers: map[string]string{"h": "v"}})
	add(&pawl.Envelope{Kind: "ready", UniqueKey: "u", Priority: 3, Headers: map[string]string{"h": "h"}})
	add(&pawl.Envelope{Kind: "leased", Queue: "other"})
	_, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"other"}, Max: 1})
	require.NoError(t, err)
	return ids
}

func mustEncode(t testing.TB, v any) []byte {
	t.Helper()
	text, err := admin.EncodeJSON(fmt.Appendf(nil, `{"user": %q}`, v.(map[string]any)["user"]))
	require.NoError(t, err)
	return text
}

// kindsOf lists the kinds of the jobs that a filter chooses, in pages of two.
func kindsOf(t testing.TB, a admin.Admin, f admin.Filter) (kinds []string) {
	t.Helper()
	for e, err := range admin.Jobs(t.Context(), a, admin.Query{Filter: f, Limit: 2}) {
		require.NoError(t, err)
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Rule: operators have the same calls for a queue in a database as for a queue in a file, in its process and from
// another process.
func TestAdmin(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(testing.TB, *postgres.Queue) admin.Admin{
		"Of":      func(_ testing.TB, q *postgres.Queue) admin.Admin { return admin.Of(q) },
		"Handler": overHandler,
	} {
		t.Run(name, func(t *testing.T) {
			q := open(t, newSchema(t))
			ids := everyState(t, q)
			a := over(t, q)

			stats, err := a.Stats(t.Context())
			require.NoError(t, err)
			require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1, Dead: 2, Completed: 1}, stats.Queues[0].Counts)
			require.Equal(t, pawl.Counts{Leased: 1}, stats.Queues[1].Counts)

			dead := admin.Filter{Filter: pawl.Filter{State: pawl.Dead}}
			require.Len(t, kindsOf(t, a, admin.Filter{}), len(ids))
			require.Equal(t, []string{"dead", "dead too"}, kindsOf(t, a, dead))
			require.Equal(t, []string{"dead too"}, kindsOf(t, a, admin.Filter{Payload: []string{"user=dead too"}}))
			require.Equal(t, []string{"leased"}, kindsOf(t, a, admin.Filter{Filter: pawl.Filter{State: pawl.Leased}}))
			groups, damaged, err := admin.Summarize(t.Context(), a, dead, "error")
			require.NoError(t, err)
			require.Zero(t, damaged)
			require.Len(t, groups, 1)
			require.EqualValues(t, 2, groups[0].Count)

			text := ids["ready"].String()
			found, _, err := a.FindIDs(t.Context(), text[len(text)-6:], "")
			require.NoError(t, err)
			require.Equal(t, []pawl.ID{ids["ready"]}, found)

			effects, next, err := a.Effects(t.Context(), "")
			require.NoError(t, err)
			require.Empty(t, next)
			require.Equal(t, "once", effects[0].Key)

			for _, step := range []struct {
				verb admin.Verb
				kind string
				want error
			}{
				{admin.Retry, "dead", nil},
				{admin.Retry, "ready", pawl.ErrNotEligible},
				{admin.RunNow, "delayed", nil},
				{admin.Cancel, "delayed", nil},
				{admin.Forward, "dead too", nil},
				{admin.Delete, "completed", nil},
				{admin.Delete, "completed", pawl.ErrNotFound},
			} {
				for _, dry := range []bool{true, false} {
					errs, err := a.Do(t.Context(), admin.Action{Verb: step.verb, DryRun: dry}, ids[step.kind])
					require.NoError(t, err)
					require.ErrorIs(t, errs[0], step.want, "%s of %s", step.verb, step.kind)
				}
			}
			payload, err := admin.EncodeJSON([]byte(`{"user": "edited"}`))
			require.NoError(t, err)
			_, err = a.Edit(t.Context(), admin.Edit{ID: ids["ready"], Payload: payload, Was: admin.SumOf([]byte("another"))})
			require.ErrorIs(t, err, pawl.ErrNotEligible)
			for _, dry := range []bool{true, false} {
				_, err = a.Edit(t.Context(), admin.Edit{ID: ids["ready"], Payload: payload, DryRun: dry})
				require.NoError(t, err)
			}
			edited, err := a.Job(t.Context(), ids["ready"])
			require.NoError(t, err)
			require.Equal(t, payload, edited.Payload)
			require.Len(t, admin.EditsOf(edited), 1)
			require.Equal(t, "h", edited.Headers["h"])

			set := pawl.Limits{Running: 7, RunningPerKey: 2, RatePerKey: pawl.Rate{Starts: 5, Per: time.Minute, Burst: 2}, MaxWaiting: 9}
			require.NoError(t, a.SetLimits(t.Context(), "other", &set))
			stats, err = a.Stats(t.Context())
			require.NoError(t, err)
			require.Equal(t, set, stats.Queues[1].Limits)
			require.Equal(t, new(pawl.Limits), stats.Queues[1].Declared)
			require.ErrorIs(t, a.SetLimits(t.Context(), "other", &pawl.Limits{Fair: true}), pawl.ErrInvalid)
			require.NoError(t, a.SetLimits(t.Context(), "other", nil))

			require.NoError(t, a.Pause(t.Context(), "other"))
			require.NoError(t, a.Resume(t.Context(), "other"))
			_, err = a.Reap(t.Context())
			require.NoError(t, err)
			var missing *admin.UnsupportedError
			require.ErrorAs(t, a.Check(t.Context()), &missing)
			require.ErrorAs(t, a.Backup(t.Context(), new(bytes.Buffer)), &missing)
		})
	}
}

// Rule: the watchers of a queue receive the events of its process.
func TestAdminEvents(t *testing.T) {
	q := open(t, newSchema(t))
	a := overHandler(t, q)
	ctx, seen := context.WithCancel(t.Context())
	var storing sync.WaitGroup
	storing.Go(func() { // until the watch has begun and reports a job
		for ctx.Err() == nil {
			if _, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"}); err != nil {
				t.Errorf("enqueue: %v", err)
				return
			}
		}
	})
	for e, err := range a.Events(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, pawl.EventEnqueued, e.Type)
		break
	}
	seen()
	storing.Wait()
}

// Rule: an error of the server matches its sentinel in another process too.
func TestErrorsThroughTheHandler(t *testing.T) {
	schema := newSchema(t)
	require.NoError(t, open(t, schema).Close())
	execute(t, "CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA "+schema+" TO clerk; "+
		"GRANT ALL ON ALL TABLES IN SCHEMA "+schema+" TO clerk; GRANT ALL ON ALL SEQUENCES IN SCHEMA "+schema+" TO clerk")
	t.Cleanup(func() { execute(t, "DROP OWNED BY clerk; DROP ROLE clerk") })
	q, err := postgres.Open(t.Context(), "host="+hostOf()+" user=clerk dbname=postgres", &postgres.Options{Schema: schema, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	a := overHandler(t, q)
	require.NoError(t, withid.Enqueue(t.Context(), a, &pawl.Envelope{Kind: "k"}))
	execute(t, "REVOKE INSERT ON "+schema+".job FROM clerk")
	_, err = a.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, postgres.ErrPermission)
}

// Rule: a backlog moves from a database to a file and back, unchanged.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	q, other := open(t, newSchema(t)), open(t, newSchema(t))
	everyState(t, q)
	file, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	want := exported(t, admin.Of(q))
	imported(t, admin.Of(file), want)
	imported(t, admin.Of(other), exported(t, admin.Of(file)))
	got, original := jobsOf(t, other), jobsOf(t, q)
	require.Len(t, got, len(original))
	for i, e := range original {
		if e.State == pawl.Leased {
			e.State, e.LeasedSince = pawl.Ready, time.Time{}
		}
		e.Seq = got[i].Seq
		require.Equal(t, admin.JobOf(e, admin.PayloadNone), admin.JobOf(got[i], admin.PayloadNone))
		require.Equal(t, e.Payload, got[i].Payload)
	}
	effects, _, err := other.Effects(t.Context(), "", 9)
	require.NoError(t, err)
	require.Equal(t, "once", effects[0].Key)
}

// Rule: keys in order that take turns move from a database to a file and back. The jobs that held their keys hold them still, and the
// others keep their order.
func TestExportAndImportOfKeysInOrder(t *testing.T) {
	limits := pawl.Limits{Fair: true, InOrder: pawl.OrderHold}
	q, other := open(t, newSchema(t), declaring(limits)), open(t, newSchema(t), declaring(limits))
	file, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), &bolt.Options{
		Logger: hclog.NewNullLogger(), Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var batch []*pawl.Envelope
	for i := range 3 {
		for _, key := range []string{"leased", "dead", "retry"} {
			batch = append(batch, keyed(fmt.Sprint(i), key))
		}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 9})
	require.NoError(t, err)
	require.Len(t, leases, 3)
	heads := make(map[string]*pawl.Lease)
	for _, l := range leases {
		heads[l.Key] = l
	}
	require.NoError(t, q.Settle(t.Context(), heads["dead"].Abandon(pawl.ReasonPermanent, errors.New("bad")), heads["retry"].Nack(time.Hour, errors.New("again"))))
	imported(t, admin.Of(file), exported(t, admin.Of(q)))
	imported(t, admin.Of(other), exported(t, admin.Of(file)))
	for _, e := range jobsOf(t, other) {
		require.Equal(t, e.ID == heads[e.Key].ID, e.HoldsKey, "job %s of key %s", e.Kind, e.Key)
	}
	runs := func(key string) {
		t.Helper()
		for i := range 3 {
			l := oneLease(t, other)
			require.Equal(t, []string{key, fmt.Sprint(i)}, []string{l.Key, l.Kind})
			require.Empty(t, runnable(t, other))
			require.NoError(t, other.Settle(t.Context(), l.Ack()))
		}
	}
	runs("leased")
	require.NoError(t, other.RunNow(t.Context(), heads["retry"].ID))
	runs("retry")
	require.NoError(t, other.Retry(t.Context(), heads["dead"].ID, false))
	runs("dead")
	require.Empty(t, jobsOf(t, other))
}

func exported(t testing.TB, a admin.Admin) []byte {
	t.Helper()
	var out bytes.Buffer
	_, err := admin.Export(t.Context(), a, &out, nil)
	require.NoError(t, err)
	return out.Bytes()
}

func imported(t testing.TB, a admin.Admin, text []byte) {
	t.Helper()
	_, err := admin.Import(t.Context(), a, bytes.NewReader(text), &admin.ImportOptions{KeepIDs: true})
	require.NoError(t, err)
}

func jobsOf(t testing.TB, q *postgres.Queue) (jobs []*pawl.Envelope) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		jobs = append(jobs, e)
	}
	return jobs
}
