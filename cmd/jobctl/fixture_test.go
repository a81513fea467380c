package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// start is when the first job of a test file was created; today is when jobctl reads it.
var (
	start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	today = start.Add(3*time.Hour + 4*time.Second)
)

// id is the ID of the n-th job of a test file.
func id(n int) pawl.ID {
	id, err := pawl.ParseID(fmt.Sprintf("019caa00-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// file is a queue under construction, with a clock that only moves on request.
type file struct {
	t       tester
	q       *bolt.Queue
	elapsed atomic.Int64 // nanoseconds since start; the queue reads it too
	made    int
}

func (f *file) now() time.Time       { return start.Add(time.Duration(f.elapsed.Load())) }
func (f *file) pass(d time.Duration) { f.elapsed.Add(int64(d)) }
func (f *file) goTo(t time.Time)     { f.elapsed.Store(int64(t.Sub(start))) }

// tester is what creating a file needs from a test or a script.
type tester interface {
	require.TestingT
	Helper()
}

// build creates app.db in a new folder, which becomes the current one, and fills it. At the end
// of the test the file is checked.
func build(t *testing.T, fill func(*file)) {
	t.Helper()
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", fill)
	t.Cleanup(func() { checkFile(t, "app.db") })
}

func buildAt(t tester, path string, fill func(*file)) {
	t.Helper()
	f := &file{t: t}
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: f.now})
	require.NoError(t, err)
	f.q = q
	if fill != nil {
		fill(f)
	}
	require.NoError(t, f.q.Close())
}

// add enqueues the next job.
func (f *file) add(e pawl.Envelope) {
	f.t.Helper()
	f.made++
	e.ID = id(f.made)
	if e.Kind == "" {
		e.Kind = "mail.send"
	}
	require.NoError(f.t, withid.Enqueue(context.Background(), f.q, &e))
}

// fetch leases the next job of a queue.
func (f *file) fetch(queue string) *pawl.Lease {
	f.t.Helper()
	leases, err := f.q.Fetch(context.Background(), pawl.Request{Queues: []string{queue}, Max: 1, Wait: pawl.WaitNot})
	require.NoError(f.t, err)
	return leases[0]
}

// kill adds a job, runs it once for each error, and makes it dead with the last one.
func (f *file) kill(e pawl.Envelope, reason pawl.Reason, causes ...string) {
	f.t.Helper()
	f.add(e)
	for i, cause := range causes {
		f.pass(30 * time.Second)
		l := f.fetch(e.Queue)
		if i < len(causes)-1 {
			require.NoError(f.t, f.q.Settle(context.Background(), l.Nack(0, errors.New(cause))))
			continue
		}
		require.NoError(f.t, f.q.Settle(context.Background(), l.Abandon(reason, errors.New(cause))))
	}
}

// everyState puts a job into each state: 1 dead (exhausted), 2 dead (permanent), 3 snoozed, 4
// leased, 5 delayed, 6 ready.
func everyState(f *file) {
	f.t.Helper()
	policy := pawl.Exponential(5*time.Second, 2).Cap(45 * time.Second).Jitter(0.15)
	f.kill(pawl.Envelope{
		Queue: "email", MaxRetries: 1, Priority: 5, Timeout: 90 * time.Second, Policy: &policy,
		Payload: pack(f.t, map[string]any{"to": "ada@example.com"}),
		Headers: map[string]string{"trace-id": "4bf92f35", "tenant": "acme"},
	}, pawl.ReasonExhausted, "dial tcp 192.0.2.7:25: connection refused", "timeout\nafter 30s")
	f.kill(pawl.Envelope{Queue: "reports", Kind: "report.build", MaxRetries: 3, Payload: []byte("\x00\xffraw")},
		pawl.ReasonPermanent, "no such report: 17")
	f.add(pawl.Envelope{Queue: "reports", Kind: "report.old", MaxRetries: 3})
	require.NoError(f.t, f.q.Settle(context.Background(), f.fetch("reports").Snooze(100*365*24*time.Hour)))
	f.add(pawl.Envelope{Queue: "email", MaxRetries: 3})
	f.goTo(today.Add(-242 * time.Second))
	f.fetch("email")
	f.add(pawl.Envelope{Queue: "email", MaxRetries: 3, Delay: time.Hour})
	f.goTo(today.Add(-12 * time.Second))
	f.add(pawl.Envelope{Queue: "email", MaxRetries: 3})
}

// keyed puts three jobs of key a and one of key b on queue sync, which lets one job of a key run and
// start in an hour: 1 leased, 2 and 3 blocked, 4 ready.
func keyed(f *file) {
	f.t.Helper()
	path := f.q.Path()
	require.NoError(f.t, f.q.Close())
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: f.now, Limits: map[string]pawl.Limits{
		"sync": {RunningPerKey: 1, RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour}},
	}})
	require.NoError(f.t, err)
	f.q = q
	f.goTo(today.Add(-time.Minute))
	for _, key := range []string{"a", "a", "a"} {
		f.add(pawl.Envelope{Queue: "sync", Key: key})
	}
	f.fetch("sync")
	f.add(pawl.Envelope{Queue: "sync", Key: "b"})
}

// pooled puts jobs on the queues email and reports, which share the pool gpu: 1 leased, 2 ready, 3 ready.
func pooled(f *file) {
	f.t.Helper()
	path := f.q.Path()
	require.NoError(f.t, f.q.Close())
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: f.now, Limits: map[string]pawl.Limits{
		"email": {Pool: pawl.Pool{Name: "gpu", Running: 2}}, "reports": {Pool: pawl.Pool{Name: "gpu", Running: 1}},
	}})
	require.NoError(f.t, err)
	f.q = q
	f.goTo(today.Add(-time.Minute))
	f.add(pawl.Envelope{Queue: "email"})
	f.fetch("email")
	f.add(pawl.Envelope{Queue: "email"})
	f.add(pawl.Envelope{Queue: "reports"})
}

// heldKey puts two jobs of key a and one of key b on queue sync, whose keys dead jobs hold: 1 is dead and holds its key,
// 2 is blocked, 3 ready.
func heldKey(f *file) {
	f.t.Helper()
	path := f.q.Path()
	require.NoError(f.t, f.q.Close())
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: f.now, Limits: map[string]pawl.Limits{"sync": {InOrder: pawl.OrderHold}}})
	require.NoError(f.t, err)
	f.q = q
	f.goTo(today.Add(-time.Minute))
	f.add(pawl.Envelope{Queue: "sync", Key: "a"})
	l := f.fetch("sync")
	require.NoError(f.t, q.Settle(context.Background(), l.Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	f.add(pawl.Envelope{Queue: "sync", Key: "a"})
	f.add(pawl.Envelope{Queue: "sync", Key: "b"})
}

// full fills queue sync with two waiting jobs of key a, as many as may wait of a key, and one less than may wait of the queue.
func full(f *file) {
	f.t.Helper()
	path := f.q.Path()
	require.NoError(f.t, f.q.Close())
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: f.now, Limits: map[string]pawl.Limits{"sync": {MaxWaiting: 3, MaxWaitingPerKey: 2}}})
	require.NoError(f.t, err)
	f.q = q
	f.goTo(today.Add(-time.Minute))
	f.add(pawl.Envelope{Queue: "sync", Key: "a"})
	f.add(pawl.Envelope{Queue: "sync", Key: "a", Delay: time.Hour})
}

func pack(t tester, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	require.NoError(t, err)
	return b
}

// outcomeOf is the result of one command line.
type outcomeOf struct {
	code           int
	stdout, stderr string
}

// jobctl runs a command line at the time today, without a terminal.
func jobctl(t *testing.T, args ...string) outcomeOf {
	t.Helper()
	return runAsOfToday(strings.NewReader(""), false, args)
}

// piped runs a command line with a standard input.
func piped(t *testing.T, in string, args ...string) outcomeOf {
	t.Helper()
	return runAsOfToday(strings.NewReader(in), false, args)
}

// asked runs a command line on a terminal with a user who answers.
func asked(t *testing.T, answer io.Reader, args ...string) outcomeOf {
	t.Helper()
	return runAsOfToday(answer, true, args)
}

func runAsOfToday(stdin io.Reader, terminal bool, args []string) outcomeOf {
	return asOfToday(context.Background(), stdin, terminal, nil, args...)
}

// asOfToday runs a command line, or calls run instead.
func asOfToday(ctx context.Context, stdin io.Reader, terminal bool, run func(*app) error, args ...string) outcomeOf {
	var stdout, stderr bytes.Buffer
	a := &app{
		stdin: stdin, stdout: bufio.NewWriter(&stdout), stderr: &stderr,
		now: func() time.Time { return today }, zone: time.UTC, env: func(string) string { return "" }, terminal: terminal,
	}
	if run == nil {
		code := a.run(ctx, args)
		return outcomeOf{code, stdout.String(), stderr.String()}
	}
	err := run(a)
	_ = a.stdout.Flush()
	code := a.explain(ctx, err)
	return outcomeOf{code, stdout.String(), stderr.String()}
}

// run executes a command line as main does, with streams of the test.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runIn(context.Background(), args, stdin, stdout, stderr)
}

// words splits a command line at its spaces.
func words(line string) []string { return strings.Fields(line) }

// checkFile requires that bbolt finds no fault in a file and that its counts match a listing.
func checkFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		return nil
	}))
	require.NoError(t, db.Close())

	r, err := bolt.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	stats, err := r.Stats(context.Background())
	require.NoError(t, err)
	counted, listed := map[string]pawl.Counts{}, map[string]pawl.Counts{}
	for _, q := range stats.Queues {
		counted[q.Name] = q.Counts
		listed[q.Name] = pawl.Counts{}
	}
	for e, err := range r.Jobs(context.Background(), pawl.Filter{}) {
		if errors.Is(err, pawl.ErrCorrupt) && e != nil {
			return // a test damaged it on purpose
		}
		require.NoError(t, err)
		c := listed[e.Queue]
		*driver.CountOf(&c, e.State)++
		if e.State == pawl.Ready && driver.Waits(e) {
			c.Blocked++
		}
		listed[e.Queue] = c
	}
	require.Equal(t, listed, counted)
}

// spoil overwrites the stored record of a job.
func spoil(t tester, path string, id pawl.ID) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("pawl")).Bucket([]byte("jobs")).Put(id[:], []byte("\x01spoilt"))
	}))
	require.NoError(t, db.Close())
}

func exists(path string) bool {
	_, err := os.Lstat(filepath.Clean(path))
	return err == nil
}
