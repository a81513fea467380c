package driver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/metrics"
)

// ledger is a collector that writes down what it is told, in order.
type ledger struct {
	counts   []string
	observed map[string]float64
	labels   []metrics.Labels
}

func (l *ledger) Increment(name string, labels metrics.Labels) {
	l.counts = append(l.counts, name)
	l.labels = append(l.labels, labels)
}

func (l *ledger) Observe(name string, labels metrics.Labels, value float64) {
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
		"fetched by a clock that was set back": {pawl.Event{Type: pawl.EventFetched, At: due.Add(-time.Second), Job: &pawl.Envelope{NotBefore: due}},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 0}},
		"fetched after a backoff": {
			pawl.Event{Type: pawl.EventFetched, At: at, Job: &pawl.Envelope{NotBefore: due, BackoffSince: due.Add(-time.Second)}, Backoff: 2500 * time.Millisecond},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 1.5, "retry_latency_seconds": 2.5}},
		"fetched after no backoff at all": {
			pawl.Event{Type: pawl.EventFetched, At: due, Job: &pawl.Envelope{NotBefore: due, BackoffSince: due}},
			[]string{"jobs_fetched"}, observed{"jobs_age_seconds": 0, "retry_latency_seconds": 0}},
		"acked": {pawl.Event{Type: pawl.EventSucceeded, Took: 250 * time.Millisecond},
			[]string{"jobs_succeeded"}, observed{"jobs_exec_seconds": 0.25}},
		"acked after its timeout": {timedOut(pawl.Event{Type: pawl.EventSucceeded, Took: time.Second}),
			[]string{"jobs_succeeded", "jobs_timed_out"}, observed{"jobs_exec_seconds": 1}},
		"failed, retries remain": {pawl.Event{Type: pawl.EventRetried, Delay: 5 * time.Second, Took: time.Second},
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
				require.Equal(t, metrics.Labels{Queue: "slow", Kind: "mail"}, labels)
			}
		})
	}
}
