package pawl_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ledger is a collector that writes down what it is told, in order.
type ledger struct {
	counts   []string
	observed map[string]float64
	labels   []pawl.Labels
}

func (l *ledger) Increment(name string, labels pawl.Labels) {
	l.counts = append(l.counts, name)
	l.labels = append(l.labels, labels)
}

func (l *ledger) Observe(name string, labels pawl.Labels, value float64) {
	if l.observed == nil {
		l.observed = make(map[string]float64)
	}
	l.observed[name] = value
	l.labels = append(l.labels, labels)
}

func died(reason pawl.Reason) pawl.Event {
	return pawl.Event{Type: pawl.EventDied, Job: &pawl.Envelope{Death: &pawl.Death{Reason: reason}}}
}

// Rule: the table of counters in the specification, line by line.
func TestCountIsTheTable(t *testing.T) {
	due := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	at := due.Add(1500 * time.Millisecond)
	type observed = map[string]float64
	timedOut := func(e pawl.Event) pawl.Event {
		e.TimedOut = true
		return e
	}
	for name, test := range map[string]struct {
		event    pawl.Event
		counts   []string
		observed observed
	}{
		"fetched": {pawl.Event{Type: pawl.EventFetched, At: at, Job: &pawl.Envelope{NotBefore: due}},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 1.5}},
		"fetched by a clock that was set back": {pawl.Event{Type: pawl.EventFetched, At: due.Add(-sec), Job: &pawl.Envelope{NotBefore: due}},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 0}},
		"fetched after a backoff": {
			pawl.Event{Type: pawl.EventFetched, At: at, Job: &pawl.Envelope{NotBefore: due, BackoffSince: due.Add(-sec)}, Backoff: 2500 * time.Millisecond},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 1.5, "retry_latency_seconds": 2.5}},
		"fetched after no backoff at all": {
			pawl.Event{Type: pawl.EventFetched, At: due, Job: &pawl.Envelope{NotBefore: due, BackoffSince: due}},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 0, "retry_latency_seconds": 0}},
		"acked": {pawl.Event{Type: pawl.EventSucceeded, Took: 250 * time.Millisecond},
			[]string{"jobs_succeeded"}, observed{"jobs_exec_seconds": 0.25}},
		"acked after its timeout": {timedOut(pawl.Event{Type: pawl.EventSucceeded, Took: sec}),
			[]string{"jobs_succeeded", "jobs_timed_out"}, observed{"jobs_exec_seconds": 1}},
		"failed, retries remain": {pawl.Event{Type: pawl.EventRetried, Delay: 5 * sec, Took: sec},
			[]string{"jobs_failed", "jobs_requeued", "retries_total"}, observed{"retry_delay_seconds": 5}},
		"timed out, retries remain": {timedOut(pawl.Event{Type: pawl.EventRetried}),
			[]string{"jobs_failed", "jobs_requeued", "retries_total", "jobs_timed_out"}, observed{"retry_delay_seconds": 0}},
		"failed, retries exhausted": {died(pawl.ReasonExhausted),
			[]string{"jobs_failed", "jobs_failed_permanently", "retry_exhausted_total"}, nil},
		"timed out, retries exhausted": {timedOut(died(pawl.ReasonExhausted)),
			[]string{"jobs_failed", "jobs_failed_permanently", "retry_exhausted_total", "jobs_timed_out"}, nil},
		"failed, permanent": {died(pawl.ReasonPermanent), []string{"jobs_failed", "jobs_failed_permanently"}, nil},
		"poison":            {died(pawl.ReasonPoison), []string{"jobs_poisoned", "jobs_failed_permanently"}, nil},
		"deadline":          {died(pawl.ReasonDeadline), []string{"jobs_expired", "jobs_failed_permanently"}, nil},
		"cancelled":         {died(pawl.ReasonCancelled), []string{"jobs_cancelled", "jobs_failed_permanently"}, nil},
		"bad payload":       {died(pawl.ReasonPayload), []string{"jobs_rejected_payload", "jobs_failed_permanently"}, nil},
		"bad signature":     {died(pawl.ReasonSignature), []string{"jobs_rejected_signature", "jobs_failed_permanently"}, nil},
		"damaged":           {died(pawl.ReasonCorrupt), []string{"jobs_failed_permanently"}, nil},
		"skipped":           {pawl.Event{Type: pawl.EventSkipped}, []string{"jobs_skipped_idempotent"}, nil},
		"released":          {pawl.Event{Type: pawl.EventReleased}, []string{"jobs_released"}, nil},
		"snoozed":           {pawl.Event{Type: pawl.EventSnoozed}, []string{"jobs_snoozed"}, nil},
		"reaped":            {pawl.Event{Type: pawl.EventReaped}, []string{"jobs_reaped"}, nil},
		"recovered":         {pawl.Event{Type: pawl.EventRecovered}, []string{"jobs_recovered"}, nil},
		"enqueued":          {pawl.Event{Type: pawl.EventEnqueued}, nil, nil},
		"replaced":          {pawl.Event{Type: pawl.EventReplaced}, nil, nil},
		"asked to cancel":   {pawl.Event{Type: pawl.EventCancelled}, nil, nil},
		"revived":           {pawl.Event{Type: pawl.EventRevived}, nil, nil},
		"deleted":           {pawl.Event{Type: pawl.EventDeleted}, nil, nil},
		"unknown":           {pawl.Event{Type: "danced"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.event.Job == nil {
				test.event.Job = new(pawl.Envelope)
			}
			test.event.Job.Queue, test.event.Job.Kind = "slow", "mail"
			var l ledger
			driver.CountEvent(&l, test.event)
			require.ElementsMatch(t, test.counts, l.counts, "each once")
			require.Equal(t, test.observed, l.observed)
			for _, labels := range l.labels {
				require.Equal(t, pawl.Labels{Queue: "slow", Kind: "mail"}, labels)
			}
		})
	}
}

func TestTally(t *testing.T) {
	var tally pawl.Tally
	empty := tally.Snapshot()
	require.Zero(t, empty.Total("a"))
	require.Zero(t, empty.Distribution("d"))

	here, there := pawl.Labels{Queue: "q", Kind: "k"}, pawl.Labels{Queue: "q", Kind: "other"}
	tally.Increment("a", here)
	tally.Increment("a", here)
	tally.Increment("a", there)
	tally.Increment("b", here)
	for _, value := range []float64{3, -1, 7} {
		tally.Observe("d", here, value)
	}
	tally.Observe("d", there, 8)

	s := tally.Snapshot()
	require.Equal(t, map[pawl.Figure]int64{{Name: "a", Labels: here}: 2, {Name: "a", Labels: there}: 1, {Name: "b", Labels: here}: 1}, s.Counts)
	require.Equal(t, pawl.Distribution{Count: 3, Sum: 9, Min: -1, Max: 7}, s.Distributions[pawl.Figure{Name: "d", Labels: here}])
	require.Equal(t, int64(3), s.Total("a"))
	require.Equal(t, int64(1), s.Total("b"))
	require.Zero(t, s.Total("c"))
	require.Equal(t, pawl.Distribution{Count: 4, Sum: 17, Min: -1, Max: 8}, s.Distribution("d"))
	require.Zero(t, s.Distribution("a"), "a counter is no distribution")

	tally.Increment("b", here)
	tally.Observe("d", here, 100)
	require.Equal(t, int64(1), s.Total("b"), "a snapshot is of its moment")
	require.Equal(t, float64(8), s.Distribution("d").Max)
}

// Rule: the first value is the least and the greatest, also when all are positive.
func TestDistributionOfOneValue(t *testing.T) {
	var tally pawl.Tally
	tally.Observe("d", pawl.Labels{}, 5)
	require.Equal(t, pawl.Distribution{Count: 1, Sum: 5, Min: 5, Max: 5}, tally.Snapshot().Distribution("d"))
}

func TestTallyOfManyGoroutines(t *testing.T) {
	var tally pawl.Tally
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				tally.Increment("a", pawl.Labels{})
				tally.Observe("d", pawl.Labels{}, 1)
				tally.Snapshot()
			}
		})
	}
	all.Wait()
	s := tally.Snapshot()
	require.Equal(t, int64(8000), s.Total("a"))
	require.Equal(t, pawl.Distribution{Count: 8000, Sum: 8000, Min: 1, Max: 1}, s.Distribution("d"))
}

func TestNoCollectorDropsEverything(t *testing.T) {
	var c pawl.Collector = pawl.NoCollector{}
	c.Increment("a", pawl.Labels{})
	c.Observe("d", pawl.Labels{}, 1)
}
