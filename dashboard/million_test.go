package dashboard

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// The file of BenchmarkMillion. Seven tenths of the jobs are dead.
var (
	millionJobs = flag.Int("jobs", 1_000_000, "jobs in the file of BenchmarkMillion")
	millionRuns = flag.Int("runs", 100_000, "workflow runs in it")
)

// rareDead is how many dead jobs have the rare error.
const rareDead = 12

// BenchmarkMillion measures every page over a file with a million jobs and 100 000 runs, live and stopped: the
// median and the greatest of nine requests, the slowest page first. Run it with -benchtime 1x. Where
// PAWL_MILLION names a file, it builds the file once and keeps it. With -short it builds a small one.
func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		*millionJobs, *millionRuns = 20_000, 500
	}
	path := cmp.Or(os.Getenv("PAWL_MILLION"), filepath.Join(b.TempDir(), "million.db"))
	if _, err := os.Stat(path); err != nil {
		buildMillion(b, path)
	}
	opts := &Options{Authorize: everything, Logger: hclog.NewNullLogger(), Target: "--db million.db"}
	measure := func(b *testing.B, a admin.Admin) {
		d, err := New(a, opts)
		require.NoError(b, err)
		defer d.Close()
		for range b.N {
			slowest := timePages(b, d, 9, millionPages(b, a))
			b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
			b.ReportMetric(0, "ns/op")
		}
	}
	b.Run("live", func(b *testing.B) {
		q, err := bolt.Open(path, millionOptions())
		require.NoError(b, err)
		w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
		require.NoError(b, workflow.Open(q, nil).Handle(b.Context(), w, millionFlow))                               // verify compares runs with it
		running, err := q.Fetch(b.Context(), pawl.Request{Queues: []string{"sync"}, Max: 1000, Wait: pawl.WaitNot}) // the other jobs of their keys are blocked
		require.NoError(b, err)
		measure(b, admin.Of(q))
		for i, l := range running {
			require.NoError(b, q.Settle(b.Context(), l.Release()), i)
		}
		require.NoError(b, q.Close())
	})
	b.Run("stopped", func(b *testing.B) {
		a := admin.Offline(offline.New(path, &offline.Options{Logger: hclog.NewNullLogger()}))
		measure(b, a)
		require.NoError(b, a.Close())
	})
}

func millionOptions() *bolt.Options {
	return &bolt.Options{Logger: hclog.NewNullLogger(), Limits: map[string]pawl.Limits{"sync": {RunningPerKey: 1}, "orders": {InOrder: pawl.OrderHold}}}
}

// timePages asks for each page a number of times, prints the times, and returns the greatest median.
func timePages(b *testing.B, d *Dashboard, times int, pages []string) time.Duration {
	type row struct {
		path         string
		median, most time.Duration
	}
	var rows []row
	for _, path := range pages {
		all := make([]time.Duration, times)
		for i := range all {
			w := httptest.NewRecorder()
			began := time.Now()
			d.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/"+path, nil))
			all[i] = time.Since(began)
			require.True(b, w.Code < 300 || w.Code == http.StatusNotFound && path == noJob, "%s: %d: %s", path, w.Code, w.Body)
		}
		slices.Sort(all)
		rows = append(rows, row{path, all[len(all)/2], all[len(all)-1]})
	}
	slices.SortFunc(rows, func(x, y row) int { return cmp.Compare(y.median, x.median) })
	var text strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&text, "%8.1f %8.1f ms  %s\n", float64(r.median.Microseconds())/1000, float64(r.most.Microseconds())/1000, r.path)
	}
	fmt.Printf("%s\n  median  greatest     page\n%s", b.Name(), text.String()) // a log of a benchmark is cut
	return rows[0].median
}

// rare is the group of the dead jobs with the rare error.
var rare = url.QueryEscape("quota of account <n> is used up")

// noJob is the page of a job that does not exist, for which a small file is searched to its end.
const noJob = "job?id=ffffffff"

// millionPages are the addresses of all pages, with names and IDs from the file.
func millionPages(b *testing.B, a admin.Admin) []string {
	one := func(state pawl.State) string {
		q := admin.Query{Limit: 1}
		q.State = state
		page, err := a.List(b.Context(), q)
		require.NoError(b, err)
		require.NotEmpty(b, page.Jobs, state)
		return page.Jobs[0].Job.ID.String()
	}
	open := admin.WorkflowQuery{Limit: 1}
	open.Status = workflow.Waiting
	runs, err := a.Workflows().List(b.Context(), open)
	require.NoError(b, err)
	run := runs.Runs[0].Run.String()
	dead, ready, delayed := one(pawl.Dead), one(pawl.Ready), one(pawl.Delayed)
	pages := []string{
		"", "queues", "throughput?last=7d", "jobs", "jobs?state=dead&newest=1", "jobs?newest=1", "jobs?state=ready", "jobs?state=delayed", "jobs?state=completed",
		"jobs?state=dead&error=quota", "jobs?kind=none", "jobs?payload=to%3Dnobody", "jobs?queue=sync", "jobs?state=dead&group=" + rare, "jobs?state=dead&reason=poison",
		"jobs?state=dead&since=1h", "jobs?state=dead&sort=died&newest=1&queue=email",
		"limits", "keys?queue=sync", "keys?queue=sync&blocked=1", "key?queue=sync&name=tenant%2F2", "release-key?queue=orders&name=order%2F7", "groups", "group?name=import%2F7", "jobs?members=import%2F7", "verify", "fork?id=" + run,
		"failures", "failures?queue=email", "job?id=" + dead, "job?id=" + ready, "job?id=" + delayed, "job?id=" + one(pawl.Completed), "job?id=" + dead[28:], noJob, "job?id=" + dead[:13],
		"runs", "runs?flow=order", "runs?status=waiting", "runs?status=done", "runs?status=failed", "runs?id=99", "run?id=" + run,
		"schedules", "schedule?name=schedule-1", "workers", "file",
		"retry?select=all&state=dead", "retry?select=all&state=dead&error=quota", "retry?select=all&state=dead&group=" + rare, "delete?select=all&state=dead",
		"delete?select=all&state=completed", "cancel?select=all&state=ready", "cancel?select=all", "cancel?select=all&payload=to%3Dnobody", "run-now?select=all&state=delayed",
		"close-group?name=import%2F7", "cancel-group?name=import%2F7", "terminate-run?id=" + run, "pause-run?id=" + run,
		"retry?id=" + dead, "edit?id=" + dead, "pause-queue?name=email", "resume-queue?name=email", "signal?id=" + run, "cancel-run?id=" + run, "resume-run?id=" + run,
		"pause-schedule?name=schedule-1", "resume-schedule?name=schedule-1", "trigger-schedule?name=schedule-1",
	}
	for _, r := range routes {
		measured := slices.ContainsFunc(pages, func(page string) bool { path, _, _ := strings.Cut(page, "?"); return path == r.path })
		require.True(b, measured || r.open || r.free || r.method == http.MethodPost, "no time of the page %q is measured", r.path)
	}
	return pages
}

var millionFlow = workflow.Define("order", func(r *workflow.Run, in mail) (string, error) {
	if _, err := workflow.Step(r, "charge", func(context.Context) (string, error) { return "paid", nil }); err != nil || in.Number%2 == 0 {
		return "done", err
	}
	_, err := approved.Wait(r, 24*time.Hour)
	return "done", err
}, workflow.Retain(30*24*time.Hour))

// buildMillion stores the runs, and then the jobs.
func buildMillion(b *testing.B, path string) {
	began := time.Now()
	opts := millionOptions()
	q, err := bolt.Open(path, opts)
	require.NoError(b, err)
	e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger(), Concurrency: 128})
	require.NoError(b, e.Handle(b.Context(), w, millionFlow))
	var group sync.WaitGroup
	for part := range 200 {
		group.Go(func() {
			for n := part; n < *millionRuns; n += 200 {
				_, err := millionFlow.Start(b.Context(), e, fmt.Sprint(n), mail{To: "ada", Number: uint64(n)})
				if err != nil {
					panic(err)
				}
			}
		})
	}
	group.Wait()
	b.Log("started runs", time.Since(began))
	require.NoError(b, w.Drain(b.Context(), pawl.WaitDrained))
	b.Log("drained runs", time.Since(began))
	storeGroups(b, q)
	storeMillion(b, q)
	holdKey(b, q)
	s := schedule.Manage(q, nil)
	for n := range 200 {
		require.NoError(b, s.Put(b.Context(), schedule.Job(fmt.Sprintf("schedule-%d", n), "30 2 * * MON-FRI", sendMail, mail{To: "all"})))
	}
	require.NoError(b, q.Close())
	b.Log("built", time.Since(began))
}

// storeGroups stores 1000 groups without members.
func storeGroups(b *testing.B, q *bolt.Queue) {
	for n := range 1000 {
		require.NoError(b, group.Make(b.Context(), q, group.Group{Name: fmt.Sprintf("import/%d", n)}))
	}
}

// holdKey stores two jobs of a key in order, the first of which is dead and holds the key.
func holdKey(b *testing.B, q *bolt.Queue) {
	payload, err := driver.EncodePayload(mail{To: "bob", Number: 1})
	require.NoError(b, err)
	for range 2 {
		_, err := q.Enqueue(b.Context(), &pawl.Envelope{Kind: "mail.send", Queue: "orders", Key: "order/7", Payload: payload})
		require.NoError(b, err)
	}
	leases, err := q.Fetch(b.Context(), pawl.Request{Queues: []string{"orders"}, Max: 1})
	require.NoError(b, err)
	require.NoError(b, q.Settle(b.Context(), leases[0].Abandon(pawl.ReasonPermanent, errors.New("address unknown"))))
}

// storeMillion stores jobs of all states, in twenty queues.
func storeMillion(b *testing.B, q *bolt.Queue) {
	const portion = 5_000
	now := time.Now()
	payload, err := driver.EncodePayload(mail{To: "bob", Number: 1})
	require.NoError(b, err)
	for n := 0; n < *millionJobs; n += portion {
		jobs := make([]*pawl.Envelope, portion)
		for i := range jobs {
			jobs[i] = millionth(n+i, now, payload)
		}
		require.NoError(b, q.Restore(b.Context(), jobs, nil))
	}
}

// millionth returns one of the jobs.
func millionth(n int, now time.Time, payload []byte) *pawl.Envelope {
	e := &pawl.Envelope{ID: pawl.NewID(now), Kind: "mail.send", Queue: fmt.Sprintf("queue-%d", n%17), Payload: payload, MaxRetries: 3, Created: now, NotBefore: now, State: pawl.Ready}
	dead := *millionJobs / 10 * 7
	switch {
	case n < dead:
		text := fmt.Sprintf("dial tcp 10.0.%d.%d:25: connect: connection refused", n%4, n%200)
		switch {
		case n%(dead/rareDead) == 7:
			text = fmt.Sprintf("quota of account %d is used up", n)
		case n%3 == 0:
			text = fmt.Sprintf("421 timeout after %d s", n%60)
		}
		e.Queue, e.State, e.Attempts, e.Failures = "email", pawl.Dead, 4, 1
		e.Death = &pawl.Death{Reason: pawl.ReasonExhausted, At: now.Add(time.Duration(n) * time.Millisecond)}
		e.History = []pawl.Failure{{Attempt: 4, At: now, Error: text, Stack: "goroutine 7 [running]:\nmain.send()"}}
	case n%10 == 0:
		e.State, e.NotBefore = pawl.Delayed, now.Add(24*time.Hour)
	case n%10 == 1:
		e.State, e.Completed, e.Retain = pawl.Completed, now, 365*24*time.Hour
	case n%10 == 2:
		e.Queue, e.Key = "sync", fmt.Sprintf("tenant/%d", n%(*millionJobs/50))
	}
	e.Origin = e.Queue
	return e
}
