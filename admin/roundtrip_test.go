package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

var errBad = errors.New("bad \xff\xfe luck\x00\x1b[31m")

// fullQueue returns a queue with jobs in all states, produced by the queue itself, and with
// every field that a job can have. The texts have any bytes that a queue accepts.
func fullQueue(t *testing.T, keys *pawl.Keyring) *bolt.Queue {
	t.Helper()
	ctx, q := context.Background(), transferQueue(t)
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	add := func(e pawl.Envelope) pawl.ID { t.Helper(); must(withid.Enqueue(ctx, q, &e)); return e.ID }
	lease := func(queue string) *pawl.Lease {
		t.Helper()
		leases, err := q.Fetch(ctx, pawl.Request{Queues: []string{queue}, Max: 1, Wait: pawl.WaitNot})
		must(err)
		return leases[0]
	}
	policies := []pawl.Strategy{
		pawl.None(), pawl.Fixed(time.Second + 1), pawl.Fixed(time.Minute).Cap(time.Second).FullJitter(),
		pawl.Exponential(5*time.Second, 2).Cap(5 * time.Minute).Jitter(0.15), pawl.Exponential(1, 1.1).Jitter(1.0 / 3),
	}
	full := pawl.Envelope{
		Kind: "k\xffind \x1b[0m", Queue: "mail \u2028\xc3", Origin: "elsewhere\x80", Priority: -128,
		Payload: []byte{0, 0xff, 0xc1, '"'}, Created: time.Date(1969, 7, 20, 20, 17, 40, 1, time.UTC),
		Headers:        map[string]string{"plain": "<&>", "\xff": "\xfe", "": "x"},
		IdempotencyKey: "order \xff7", IdempotencyTTL: time.Hour + 1, UniqueKey: "one\xf0",
		UniqueIn: []pawl.State{pawl.Ready, pawl.Dead, pawl.Completed}, Retain: 1000 * time.Hour, Timeout: 3 * time.Millisecond,
		MaxRetries: 1000, Deadline: time.Date(9999, 12, 31, 0, 0, 0, 999_999_999, time.UTC), Policy: &policies[3],
	}
	delete(full.Headers, "") // no header has an empty key
	with := func(change func(*pawl.Envelope)) pawl.Envelope {
		e := full
		change(&e)
		return e
	}

	// Completed with its key done; a later job with the key waits; another key is done.
	add(with(func(e *pawl.Envelope) { e.Queue = "done" }))
	must(q.Settle(ctx, lease("done").Ack()))
	add(with(func(e *pawl.Envelope) { e.IdempotencyKey, e.UniqueKey, e.Queue = "order 8", "two", "done" }))
	must(q.Settle(ctx, lease("done").Ack()))
	add(full)

	// Retries: one waits, one is ready, one has a retry after its deadline.
	add(with(func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey, e.Policy = "retries", "", &policies[4] }))
	must(q.Settle(ctx, lease("retries").Nack(time.Hour, errBad)))
	add(pawl.Envelope{Kind: "k", Queue: "retries", MaxRetries: 5, Policy: &policies[0]})
	must(q.Settle(ctx, lease("retries").Nack(0, errBad)))
	must(q.Settle(ctx, lease("retries").Nack(0, errors.New(strings.Repeat("ä", pawl.MaxErrorText)))))
	add(pawl.Envelope{Kind: "k", Queue: "late", MaxRetries: 5, Deadline: time.Now().Add(time.Hour), Policy: &policies[1]})
	must(q.Settle(ctx, lease("late").Nack(2*time.Hour, nil)))

	// Dead: one for each reason, one of them retried before.
	for i, reason := range []pawl.Reason{pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonSignature, "\xffown"} {
		add(with(func(e *pawl.Envelope) {
			e.Queue, e.IdempotencyKey, e.UniqueKey, e.UniqueIn = "dead", "", fmt.Sprint("d", i), nil
		}))
		must(q.Settle(ctx, lease("dead").Abandon(reason, errBad)))
	}
	must(q.Cancel(ctx, add(pawl.Envelope{Kind: "k", Queue: "dead"})))
	revived := add(pawl.Envelope{Kind: "k", Queue: "revived", Policy: &policies[2]})
	must(q.Settle(ctx, lease("revived").Abandon(pawl.ReasonPermanent, errBad)))
	must(q.Retry(ctx, revived, true))

	// Waiting: for a time, for a worker, for a key that is leased; and two paused queues.
	add(with(func(e *pawl.Envelope) { e.Queue, e.Delay, e.IdempotencyKey = "later", time.Hour, "" }))
	add(pawl.Envelope{Kind: "snoozed", Queue: "later", Payload: bytes.Repeat([]byte{0xff}, 300_000)})
	must(q.Settle(ctx, lease("later").Snooze(1000*time.Hour)))
	for range 3 {
		add(pawl.Envelope{Kind: "k", Queue: "keys", IdempotencyKey: "open", Created: time.Date(20000, 1, 1, 0, 0, 0, 1, time.UTC)})
	}
	lease("keys")
	must(q.Pause(ctx, "keys"))
	must(q.Pause(ctx, "never\xff"))

	signed := pawl.Envelope{Kind: "k", Queue: "signed", Payload: []byte("signed")}
	must(keys.Sign(&signed))
	add(signed)

	// Rare states: a history with dropped entries, crashes, a poison.
	history := simpleJob(1, func(e *pawl.Envelope) {
		e.Failures, e.Attempts, e.Crashes = 260, 250, 2
		for n := range pawl.HistoryKeepHead + pawl.HistoryKeepTail {
			e.History = append(e.History, pawl.Failure{Attempt: n + 60*(n/pawl.HistoryKeepHead), At: e.Created.Add(time.Duration(n)), Error: fmt.Sprint("\xff", n)})
		}
	})
	poison := simpleJob(2, func(e *pawl.Envelope) {
		e.State, e.Crashes, e.Death = pawl.Dead, 5, &pawl.Death{Reason: pawl.ReasonPoison, At: e.Created}
		e.Failures, e.History = 1, []pawl.Failure{{At: e.Created, Error: "crashed"}}
	})
	must(q.Restore(ctx, []*pawl.Envelope{history, poison}, nil))
	return q
}

// fullKeys returns the keys that sign the signed job of fullQueue.
func fullKeys(t *testing.T) *pawl.Keyring {
	t.Helper()
	keys, err := pawl.NewKeyring("2026\xff", map[string][]byte{"2026\xff": bytes.Repeat([]byte{7}, pawl.MinSecretBytes)})
	require.NoError(t, err)
	return keys
}

var (
	sequence = regexp.MustCompile(`"sequence":\d+`)
	headline = regexp.MustCompile(`^.*\n`)
)

// comparable returns an export without what may differ between two exports of the same jobs.
func comparable(export string) string {
	return headline.ReplaceAllString(sequence.ReplaceAllString(export, `"sequence":0`), "")
}

// Rule: importing an export into an empty file under the same IDs loses nothing, and an export
// of that file equals the first one.
func TestRoundTripLosesNothing(t *testing.T) {
	ctx := t.Context()
	keys := fullKeys(t)
	from, to := fullQueue(t, keys), transferQueue(t)
	states := make(map[pawl.State]bool)
	for _, e := range jobsIn(t, from) {
		states[e.State] = true
	}
	require.Len(t, states, len(pawl.States()), "jobs in all states")

	export := exportOf(t, Of(from))
	imported, err := Import(ctx, Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	n := int64(len(jobsIn(t, from)))
	require.Equal(t, Imported{Version: ExportVersion, Checked: n, Jobs: n, Effects: 2, Paused: 2}, imported)
	requireSameJobs(t, from, to)
	for _, e := range jobsIn(t, to) {
		if len(e.Signature) > 0 {
			require.NoError(t, keys.Verify(e))
		}
	}
	wantEffects, _, err := from.Effects(ctx, "", 10)
	require.NoError(t, err)
	gotEffects, _, err := to.Effects(ctx, "", 10)
	require.NoError(t, err)
	require.Equal(t, wantEffects, gotEffects)
	require.Equal(t, pausedIn(t, from), pausedIn(t, to))

	again := strings.ReplaceAll(comparable(export), `"state":"leased"`, `"state":"ready"`)
	again = regexp.MustCompile(`"leased_at":"[^"]*"`).ReplaceAllString(again, `"leased_at":null`)
	require.Equal(t, sortedQueues(again), sortedQueues(comparable(exportOf(t, Of(to)))))
}

// pausedIn returns the paused queues.
func pausedIn(t *testing.T, q *bolt.Queue) map[string]bool {
	t.Helper()
	s, err := q.Stats(context.Background())
	require.NoError(t, err)
	paused := make(map[string]bool)
	for _, row := range s.Queues {
		if row.Paused {
			paused[row.Name] = true
		}
	}
	return paused
}

// sortedQueues removes the order of the queues, which is that of their first jobs.
func sortedQueues(export string) map[string]int {
	lines := make(map[string]int)
	for i, line := range strings.Split(export, "\n") {
		if strings.HasPrefix(line, `{"queue"`) {
			i = 0
		}
		lines[line] = i
	}
	return lines
}

// Rule: imported jobs continue to work: jobs that waited for a key are skipped if it counts as
// done, and the next one runs if it was only leased.
func TestRoundTripWorksOn(t *testing.T) {
	ctx := t.Context()
	from, to := fullQueue(t, fullKeys(t)), transferQueue(t)
	_, err := Import(ctx, Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
	require.NoError(t, err)
	require.NoError(t, to.Resume(ctx, "keys"))
	for _, c := range []struct {
		queue string
		runs  int
		rule  string
	}{{"mail \u2028\xc3", 0, "its key is done"}, {"keys", 3, "one after the other"}, {"retries", 1, "the other one waits an hour"}, {"dead", 0, "dead jobs stay"}} {
		runs := 0
		for {
			leases, err := to.Fetch(ctx, pawl.Request{Queues: []string{c.queue}, Max: 1, Wait: pawl.WaitNot})
			if errors.Is(err, pawl.ErrEmpty) {
				break
			}
			require.NoError(t, err)
			runs++
			require.NoError(t, to.Settle(ctx, leases[0].Abandon(pawl.ReasonPermanent, nil)))
		}
		require.Equal(t, c.runs, runs, "%s: %s", c.queue, c.rule)
	}
}

// Rule: for any jobs that a queue can have, a round trip loses nothing.
func TestRoundTripOfAnyJobs(t *testing.T) {
	for seed := range uint64(race.Fewer(40)) {
		r := rand.New(rand.NewPCG(seed, 7))
		from, to := transferQueue(t), transferQueue(t)
		var jobs []*pawl.Envelope
		for n := range 1 + r.IntN(60) {
			jobs = append(jobs, anyJob(r, n))
		}
		r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		require.NoError(t, from.Restore(t.Context(), jobs, nil), "seed %d", seed)
		_, err := Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), &ImportOptions{KeepIDs: true})
		require.NoError(t, err, "seed %d", seed)
		requireSameJobs(t, from, to)
	}
}

// anyJob returns a random job. A waiting job waits for hours, so that nothing moves during the
// test.
func anyJob(r *rand.Rand, n int) *pawl.Envelope {
	text := func(least, most int) string {
		b := make([]byte, least+r.IntN(most-least+1))
		for i := range b {
			if b[i] = byte(r.IntN(256)); r.IntN(2) > 0 || b[i] == 0 {
				b[i] = 'a' + b[i]%26
			}
		}
		return string(b)
	}
	span := func() time.Duration { return time.Duration(r.Int64N(1<<40)) >> r.IntN(40) }
	past := func() time.Time { return time.Unix(r.Int64N(1<<30), r.Int64N(1e9)).UTC() }
	hours := func() time.Time { return time.Now().Add(time.Hour + span()*1000).Round(0) }
	maybe := func(fn func()) {
		if r.IntN(2) > 0 {
			fn()
		}
	}
	names := []string{text(1, 255), "b", "c"}
	e := simpleJob(n+1, func(e *pawl.Envelope) {
		e.Kind, e.Queue, e.Origin = names[r.IntN(3)], names[r.IntN(3)], text(1, 20)
		e.State = pawl.States()[r.IntN(len(pawl.States()))]
		e.Created, e.NotBefore, e.Payload = past(), past(), []byte(text(0, 3000>>r.IntN(12)))
	})
	maybe(func() { e.Priority = int8(r.IntN(256) - 128) })
	maybe(func() { e.MaxRetries, e.Attempts, e.Crashes = r.IntN(1001), r.IntN(2000), r.IntN(5) })
	maybe(func() { e.Deadline = hours() })
	maybe(func() { e.Timeout = span() })
	maybe(func() { e.IdempotencyKey, e.IdempotencyTTL = text(0, 5), span() })
	maybe(func() { e.UniqueKey = "u" + text(0, 1) })
	maybe(func() { e.Key, e.Cost, e.Weight = text(1, 5), 2+r.IntN(9), 2+r.IntN(9) })
	maybe(func() { e.KeyID, e.Signature = text(0, 255), []byte(text(0, 64)) })
	maybe(func() { e.Headers = map[string]string{text(1, 50): text(0, 100), "h": "v"} })
	maybe(func() { e.Failures = r.IntN(5) })
	maybe(func() {
		s := pawl.Exponential(span(), 1+r.Float64()*10)
		maybe(func() { s = s.Cap(span()) })
		maybe(func() { s = s.Jitter(r.Float64()) })
		e.Policy = &s
	})
	if e.UniqueKey != "" {
		maybe(func() { e.UniqueIn = pawl.States()[r.IntN(3) : 3+r.IntN(3)] })
	}
	for range e.Failures {
		e.History = append(e.History, pawl.Failure{Attempt: r.IntN(9), At: past(), Error: text(0, 4096>>r.IntN(12)), Stack: text(0, 4096>>r.IntN(13))})
	}
	switch e.State {
	case pawl.Delayed:
		e.NotBefore = hours()
		maybe(func() { e.BackoffSince = past() })
	case pawl.Dead:
		e.Death = &pawl.Death{Reason: pawl.Reason(text(1, 20)), At: past()}
	case pawl.Completed:
		e.Completed, e.Retain = hours(), time.Hour+span()
	}
	return e
}
