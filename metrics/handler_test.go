package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/metrics"
)

// source is a queue with given statistics.
type source struct {
	stats pawl.Stats
	err   error
}

func (s source) Stats(context.Context) (pawl.Stats, error) { return s.stats, s.err }

func get(h http.Handler, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "/metrics", nil))
	return w
}

// Rule: a page has each figure of the queue and of the tally, in an order that does not change.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := source{stats: pawl.Stats{
			Queues: []pawl.QueueStats{
				{Name: "mail", Counts: pawl.Counts{Ready: 5, Blocked: 2, Delayed: 1, Leased: 4, Dead: 6, Completed: 7, Held: 5}, Oldest: time.Now().Add(-90 * time.Second)},
				{Name: "sync", Paused: true},
			},
			Storage: pawl.Storage{Size: 65536, Free: 4096, Max: 131072},
		}}
		var tally metrics.Tally
		tally.Increment(metrics.RetriesTotal, metrics.Labels{Queue: "mail", Kind: "welcome"})
		tally.Increment(metrics.JobsFetched, metrics.Labels{Queue: "sync", Kind: "pull"})
		tally.Increment(metrics.JobsFetched, metrics.Labels{Queue: "mail", Kind: "welcome"})
		tally.Increment(metrics.JobsFetched, metrics.Labels{Queue: "mail", Kind: "welcome"})
		for _, seconds := range []float64{0.0005, 0.001, 0.7, 5000} {
			tally.Observe(metrics.JobsExecSeconds, metrics.Labels{Queue: "mail", Kind: "welcome"}, seconds)
		}

		w := get(metrics.Handler(q, &tally), http.MethodGet)
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", w.Header().Get("Content-Type"))
		require.Equal(t, `# HELP pawl_jobs Jobs by queue and state; a blocked job is not counted as ready.
# TYPE pawl_jobs gauge
pawl_jobs{queue="mail",state="ready"} 3
pawl_jobs{queue="mail",state="blocked"} 2
pawl_jobs{queue="mail",state="delayed"} 1
pawl_jobs{queue="mail",state="leased"} 4
pawl_jobs{queue="mail",state="dead"} 6
pawl_jobs{queue="mail",state="completed"} 7
pawl_jobs{queue="sync",state="ready"} 0
pawl_jobs{queue="sync",state="blocked"} 0
pawl_jobs{queue="sync",state="delayed"} 0
pawl_jobs{queue="sync",state="leased"} 0
pawl_jobs{queue="sync",state="dead"} 0
pawl_jobs{queue="sync",state="completed"} 0
# HELP pawl_oldest_ready_seconds How long the oldest job that could run has been ready.
# TYPE pawl_oldest_ready_seconds gauge
pawl_oldest_ready_seconds{queue="mail"} 90
pawl_oldest_ready_seconds{queue="sync"} 0
# HELP pawl_queue_paused 1 if the queue is paused.
# TYPE pawl_queue_paused gauge
pawl_queue_paused{queue="mail"} 0
pawl_queue_paused{queue="sync"} 1
# HELP pawl_queue_rest_seconds How long the queue still rests after a throttle; 0 if it does not.
# TYPE pawl_queue_rest_seconds gauge
pawl_queue_rest_seconds{queue="mail"} 0
pawl_queue_rest_seconds{queue="sync"} 0
# HELP pawl_held_keys Keys that a dead job holds, so that no other job of the key runs.
# TYPE pawl_held_keys gauge
pawl_held_keys{queue="mail"} 5
pawl_held_keys{queue="sync"} 0
# HELP pawl_file_bytes Size of the file.
# TYPE pawl_file_bytes gauge
pawl_file_bytes 65536
# HELP pawl_file_free_bytes Bytes of the file that are free for reuse.
# TYPE pawl_file_free_bytes gauge
pawl_file_free_bytes 4096
# HELP pawl_file_max_bytes Bytes of the file that may be in use before enqueues are refused.
# TYPE pawl_file_max_bytes gauge
pawl_file_max_bytes 131072
# HELP pawl_jobs_fetched_total Counter jobs_fetched of package metrics.
# TYPE pawl_jobs_fetched_total counter
pawl_jobs_fetched_total{queue="mail",kind="welcome"} 2
pawl_jobs_fetched_total{queue="sync",kind="pull"} 1
# HELP pawl_retries_total Counter retries_total of package metrics.
# TYPE pawl_retries_total counter
pawl_retries_total{queue="mail",kind="welcome"} 1
# HELP pawl_jobs_exec_seconds Distribution jobs_exec_seconds of package metrics.
# TYPE pawl_jobs_exec_seconds histogram
`, w.Body.String()[:strings.Index(w.Body.String(), "pawl_jobs_exec_seconds_bucket")])
		for _, line := range []string{
			`pawl_jobs_exec_seconds_bucket{queue="mail",kind="welcome",le="0.001"} 2`,
			`pawl_jobs_exec_seconds_bucket{queue="mail",kind="welcome",le="0.5"} 2`,
			`pawl_jobs_exec_seconds_bucket{queue="mail",kind="welcome",le="1"} 3`,
			`pawl_jobs_exec_seconds_bucket{queue="mail",kind="welcome",le="3600"} 3`,
			`pawl_jobs_exec_seconds_bucket{queue="mail",kind="welcome",le="+Inf"} 4`,
			`pawl_jobs_exec_seconds_sum{queue="mail",kind="welcome"} 5000.7015`,
			`pawl_jobs_exec_seconds_count{queue="mail",kind="welcome"} 4`,
		} {
			require.Contains(t, w.Body.String(), line+"\n")
		}
	})
}

// Rule: a name cannot end its quotes or its line.
func TestHostileName(t *testing.T) {
	q := source{stats: pawl.Stats{Queues: []pawl.QueueStats{{Name: "a\"} 1\nb\\\xff"}}}}
	body := get(metrics.Handler(q, nil), http.MethodGet).Body.String()
	require.Contains(t, body, `pawl_queue_paused{queue="a\"} 1\nb\\`+"\uFFFD"+`"} 0`+"\n")
}

// Rule: an engine that does not report a size has no figure of one.
func TestPageWithoutFile(t *testing.T) {
	require.NotContains(t, get(metrics.Handler(source{}, nil), http.MethodGet).Body.String(), "pawl_file")
	unknown := source{stats: pawl.Stats{Storage: pawl.Storage{Size: 1, Free: -1}}}
	require.NotContains(t, get(metrics.Handler(unknown, nil), http.MethodGet).Body.String(), "free")
}

// Rule: a queue that cannot be read is an error of the server, and never an empty page.
func TestPageOfAQueueThatFails(t *testing.T) {
	w := get(metrics.Handler(source{err: errors.New("the file was replaced")}, nil), http.MethodGet)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "read the queue: the file was replaced\n", w.Body.String())
}

// Rule: the page is only read.
func TestPageMethods(t *testing.T) {
	w := get(metrics.Handler(source{}, nil), http.MethodPost)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	require.Equal(t, http.StatusOK, get(metrics.Handler(source{}, nil), http.MethodHead).Code)
}

// Rule: whoever invents kinds or queues cannot grow a page without bound, and nothing is left out
// of the sums.
func TestLabelsAreBounded(t *testing.T) {
	var tally metrics.Tally
	var q source
	for i := range metrics.MaxLabels + 5 {
		l := metrics.Labels{Queue: "q", Kind: fmt.Sprint(i)}
		tally.Increment(metrics.JobsFetched, l)
		tally.Observe(metrics.JobsExecSeconds, l, 1)
		q.stats.Queues = append(q.stats.Queues, pawl.QueueStats{Name: fmt.Sprint(i), Counts: pawl.Counts{Dead: 1}})
	}
	tally.Increment(metrics.JobsFetched, metrics.Labels{Queue: "q", Kind: "0"})

	s := tally.Snapshot()
	require.Equal(t, int64(metrics.MaxLabels+6), s.Total(metrics.JobsFetched))
	other := metrics.Labels{Queue: metrics.Other, Kind: metrics.Other}
	require.Equal(t, int64(5), s.Counts[metrics.Figure{Name: metrics.JobsFetched, Labels: other}])
	require.Equal(t, int64(2), s.Counts[metrics.Figure{Name: metrics.JobsFetched, Labels: metrics.Labels{Queue: "q", Kind: "0"}}])
	require.Len(t, s.Counts, metrics.MaxLabels+1)
	require.Len(t, s.Distributions, metrics.MaxLabels+1)

	body := get(metrics.Handler(q, &tally), http.MethodGet).Body.String()
	require.Equal(t, metrics.MaxLabels+1, strings.Count(body, `state="dead"`))
	require.Contains(t, body, `pawl_jobs{queue="other",state="dead"} 5`+"\n")
	require.Contains(t, body, `pawl_jobs_fetched_total{queue="other",kind="other"} 5`+"\n")
}

// Rule: no series is written twice, whatever the queues are called.
func TestNoSeriesTwice(t *testing.T) {
	q := source{stats: pawl.Stats{Queues: []pawl.QueueStats{
		{Name: metrics.Other, Counts: pawl.Counts{Dead: 1}},
		{Name: "a\xff", Counts: pawl.Counts{Dead: 2}}, {Name: "a\xfe", Counts: pawl.Counts{Dead: 3}, Paused: true},
	}}}
	for i := range metrics.MaxLabels {
		q.stats.Queues = append(q.stats.Queues, pawl.QueueStats{Name: fmt.Sprint(i), Counts: pawl.Counts{Dead: 1}})
	}
	var tally metrics.Tally
	for _, queue := range []string{"a\xff", "a\xfe"} {
		tally.Increment(metrics.JobsFetched, metrics.Labels{Queue: queue})
		tally.Observe(metrics.JobsExecSeconds, metrics.Labels{Queue: queue}, 1)
	}
	body := get(metrics.Handler(q, &tally), http.MethodGet).Body.String()
	seen := make(map[string]bool)
	for line := range strings.Lines(body) {
		series := line[:strings.LastIndexByte(line, ' ')]
		require.False(t, seen[series] && line[0] != '#', series)
		seen[series] = true
	}
	require.Contains(t, body, `pawl_jobs{queue="other",state="dead"} 3`+"\n", "its own job, and those of the two queues beyond the bound")
	require.Contains(t, body, `pawl_jobs{queue="a`+"\uFFFD"+`",state="dead"} 5`+"\n")
	require.Contains(t, body, `pawl_queue_paused{queue="a`+"\uFFFD"+`"} 1`+"\n")
	require.Contains(t, body, `pawl_jobs_fetched_total{queue="a`+"\uFFFD"+`",kind=""} 2`+"\n")
	require.Equal(t, metrics.MaxLabels, strings.Count(body, `state="dead"`))
}
