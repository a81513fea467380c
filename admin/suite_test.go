package admin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/withid"
)

// The contract of Admin is a table of cases, in the other files of this suite, each with its
// rule. Every implementation runs it.

// implementation is one way to obtain an Admin.
type implementation struct {
	name string
	live bool // a process has the queue open

	// open returns the Admin of the file at path. For a live one, q has the file open. t.Cleanup
	// ends anything else that it needs.
	open func(t *testing.T, path string, q *bolt.Queue, now func() time.Time) Admin
}

// implementations are tested; other files append theirs.
var implementations = []implementation{
	{name: "Of", live: true, open: func(_ *testing.T, _ string, q *bolt.Queue, _ func() time.Time) Admin { return Of(q) }},
	{name: "Offline", open: func(_ *testing.T, path string, _ *bolt.Queue, now func() time.Time) Admin {
		return offlineFile(path, &offline.Options{Now: now})
	}},
}

// suiteCase is one rule of the contract.
type suiteCase struct {
	rule   string
	fill   func(f *fixture)                 // adds the jobs; may be nil
	damage func(t *testing.T, f *fixture)   // changes the closed file; may be nil
	check  func(t *testing.T, s *suiteTest) // checks the rule
}

// suiteTest is one Admin with its expected content.
type suiteTest struct {
	Admin
	*fixture
	live bool
}

// runSuite runs cases for all implementations.
func runSuite(t *testing.T, cases []suiteCase) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			for _, c := range cases {
				t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
					f := newFixture(t, c.fill)
					if c.damage != nil {
						require.NoError(t, f.q.Close())
						c.damage(t, f)
						f.open()
					}
					if !impl.live {
						require.NoError(t, f.q.Close())
						f.q = nil
					}
					a := impl.open(t, f.path, f.q, f.now)
					c.check(t, &suiteTest{a, f, impl.live})
					require.NoError(t, a.Close())
					f.finish(c.damage == nil)
				})
			}
		})
	}
}

// fixture is a queue file with a clock that only moves on request.
type fixture struct {
	t       *testing.T
	path    string
	q       *bolt.Queue // nil while no process has it open
	elapsed atomic.Int64
	ids     map[string]pawl.ID // of jobs, by their kinds
	want    []*pawl.Envelope   // all jobs, as the queue itself lists them
}

func newFixture(t *testing.T, fill func(*fixture)) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(memdir.New(t), "app.db"), ids: make(map[string]pawl.ID)}
	f.open()
	if fill != nil {
		fill(f)
	}
	f.want = listed(t, f.q, pawl.Filter{})
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	q, err := bolt.Open(f.path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: f.now, Lease: time.Hour})
	require.NoError(f.t, err)
	f.q = q
	f.t.Cleanup(func() { require.NoError(f.t, q.Close()) })
}

// finish requires that the remaining queue is sound.
func (f *fixture) finish(sound bool) {
	f.t.Helper()
	if f.q != nil {
		require.NoError(f.t, f.q.Close())
	}
	r, err := bolt.OpenReader(f.path)
	require.NoError(f.t, err)
	defer r.Close()
	if sound {
		require.NoError(f.t, r.Check(context.Background()))
	}
}

func (f *fixture) now() time.Time { return noon.Add(time.Duration(f.elapsed.Load())) }

func (f *fixture) pass(d time.Duration) { f.elapsed.Add(int64(d)) }

// add enqueues a job, and remembers its ID by its kind.
func (f *fixture) add(e pawl.Envelope) {
	f.t.Helper()
	if e.Payload == nil {
		e.Payload = packOf(f.t, map[string]any{"kind": e.Kind, "n": len(f.ids)})
	}
	require.NoError(f.t, withid.Enqueue(context.Background(), f.q, &e))
	f.ids[e.Kind] = e.ID
}

// run adds a job and fetches it.
func (f *fixture) run(e pawl.Envelope) *pawl.Lease {
	f.t.Helper()
	e.Priority = 100 // before the others
	f.add(e)
	leases, err := f.q.Fetch(context.Background(), pawl.Request{Queues: []string{e.Queue}, Max: 1, Wait: pawl.WaitNot})
	require.NoError(f.t, err)
	require.Equal(f.t, f.ids[e.Kind], leases[0].ID)
	return leases[0]
}

// everyState puts jobs into each state, in several variants: the kinds are their names.
func everyState(f *fixture) {
	ctx, q := context.Background(), f.q
	policy := pawl.Exponential(5*time.Second, 2).Cap(45 * time.Second).Jitter(0.15)
	require.NoError(f.t, q.Settle(ctx, f.run(pawl.Envelope{
		Kind: "dead", Queue: "email", MaxRetries: 1, Timeout: 90 * time.Second, Policy: &policy,
		Headers: map[string]string{"trace": "4bf9"}, KeyID: "k", Signature: []byte{1, 2},
	}).Abandon(pawl.ReasonPermanent, errors.New("dial tcp: connection refused"))))
	f.pass(time.Minute)
	l := f.run(pawl.Envelope{Kind: "dead twice", Queue: "reports", MaxRetries: 1})
	require.NoError(f.t, q.Settle(ctx, l.Nack(0, errors.New("first"))))
	again, err := q.Fetch(ctx, pawl.Request{Queues: []string{"reports"}, Max: 1, Wait: pawl.WaitNot})
	require.NoError(f.t, err)
	require.NoError(f.t, q.Settle(ctx, again[0].Abandon(pawl.ReasonExhausted, errors.New("Timeout\nafter 30s \x1b[31m\xff"))))
	f.pass(time.Minute)
	require.NoError(f.t, q.Settle(ctx, f.run(pawl.Envelope{Kind: "completed", Queue: "email", Retain: 24 * time.Hour, IdempotencyKey: "done", IdempotencyTTL: 48 * time.Hour}).Ack()))
	require.NoError(f.t, q.Settle(ctx, f.run(pawl.Envelope{Kind: "retry", Queue: "email", MaxRetries: 3}).Nack(time.Hour, errors.New("again"))))
	f.run(pawl.Envelope{Kind: "leased", Queue: "email", MaxRetries: 3, IdempotencyKey: "effect"})
	f.pass(time.Minute)
	f.add(pawl.Envelope{Kind: "delayed", Queue: "email", Delay: 2 * time.Hour, Deadline: noon.Add(72 * time.Hour), UniqueKey: "u"})
	f.add(pawl.Envelope{Kind: "ready", Queue: "email", Priority: 5})
	f.add(pawl.Envelope{Kind: "large", Queue: "other", Payload: packOf(f.t, strings.Repeat("x", 5000))})
}

// suiteStates are the kinds of everyState by their state.
var suiteStates = map[string]pawl.State{
	"dead": pawl.Dead, "dead twice": pawl.Dead, "completed": pawl.Completed, "retry": pawl.Delayed,
	"leased": pawl.Leased, "delayed": pawl.Delayed, "ready": pawl.Ready, "large": pawl.Ready,
}

// many adds jobs of the kind "many" to a queue, and returns their IDs.
func (f *fixture) many(n int, like pawl.Envelope) (ids []pawl.ID) {
	f.t.Helper()
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		own := like
		own.Payload = packOf(f.t, map[string]int{"n": i})
		jobs[i] = &own
	}
	require.NoError(f.t, withid.Enqueue(context.Background(), f.q, jobs...))
	for _, e := range jobs {
		ids = append(ids, e.ID)
	}
	return ids
}

// listed returns what the queue itself lists; an unreadable job has only its ID.
func listed(t *testing.T, from interface {
	List(context.Context, pawl.Filter, string, int) (pawl.Listing, error)
}, f pawl.Filter) (all []*pawl.Envelope) {
	t.Helper()
	for after := ""; ; {
		l, err := from.List(context.Background(), f, after, 1000)
		require.NoError(t, err)
		for _, one := range l.Jobs {
			all = append(all, one.Job)
		}
		if after = l.Next; after == "" {
			return all
		}
	}
}

// readPages reads all pages of a query with Admin.List.
func readPages(t *testing.T, a Admin, q Query) (all []pawl.Listed) {
	t.Helper()
	for calls := 0; ; calls++ {
		require.Less(t, calls, 10_000, "a list has an end")
		page, err := a.List(context.Background(), q)
		require.NoError(t, err)
		if q.Limit > 0 {
			require.LessOrEqual(t, len(page.Jobs), q.Limit)
		}
		all = append(all, page.Jobs...)
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
}

// same requires that jobs are equal in everything stored of them and in their state. It compares
// text, so that a difference is readable.
func same(t *testing.T, want, got []*pawl.Envelope) {
	t.Helper()
	require.Equal(t, asText(t, want), asText(t, got))
}

func asText(t *testing.T, jobs []*pawl.Envelope) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for _, e := range jobs {
		require.NoError(t, enc.Encode(JobOf(e, PayloadBase64)))
	}
	return b.String()
}

func envelopes(t *testing.T, listed []pawl.Listed) (all []*pawl.Envelope) {
	t.Helper()
	for _, one := range listed {
		require.NoError(t, one.Err)
		all = append(all, one.Job)
	}
	return all
}

// spoil overwrites the stored record of a job.
func spoil(kind string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		id := f.ids[kind]
		db, err := bbolt.Open(f.path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("pawl")).Bucket([]byte("jobs")).Put(id[:], []byte("\x01spoilt"))
		}))
		require.NoError(t, db.Close())
	}
}

// fileExists reports whether a file of that name exists.
func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// offlineFile returns the Admin of the file of a stopped app.
func offlineFile(path string, opts *offline.Options) Admin { return Offline(offline.New(path, opts)) }
