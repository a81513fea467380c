package pawltest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/pawltest"
)

// Rule: Enqueued returns the arguments of one kind in the order of their enqueue, including jobs
// that are done.
func TestEnqueuedReturnsAllOfAKind(t *testing.T) {
	q := pawltest.New(t, nil)
	equal(t, 0, len(pawltest.Enqueued(t, q, sendMail)))
	enqueue(t, q, "ada")
	if _, err := count.Enqueue(t.Context(), q, 7); err != nil {
		t.Fatal(err)
	}
	equal(t, pawl.EventSucceeded, pawltest.RunOne(t, q, answering(q)).Type)
	enqueue(t, q, "grace", pawl.Delay(time.Hour))
	got := pawltest.Enqueued(t, q, sendMail)
	equal(t, 2, len(got))
	equal(t, "ada", got[0].To)
	equal(t, "grace", got[1].To)
	equal(t, []int{7}, pawltest.Enqueued(t, q, count))
}

// Rule: a job that its unique key kept out was not enqueued, nor was a job that another one
// replaced.
func TestUniqueKeysCountOnce(t *testing.T) {
	q := pawltest.New(t, nil)
	enqueue(t, q, "first", pawl.Unique("k"))
	enqueue(t, q, "second", pawl.Unique("k"))
	enqueue(t, q, "third", pawl.Unique("k"), pawl.OnConflict(pawl.Replace))
	got := pawltest.Enqueued(t, q, sendMail)
	equal(t, 1, len(got))
	equal(t, "third", got[0].To)
}

// Rule: an enqueued job is found by its decoded arguments, with its schedule, even after it is
// done.
func TestRequireEnqueuedReturnsTheJob(t *testing.T) {
	q := pawltest.New(t, nil)
	now := time.Now() // with a monotonic part, which does not travel
	job, err := sendMail.Enqueue(t.Context(), q, mail{To: "ada", When: now, note: "x"},
		pawl.OnQueue("fast"), pawl.Priority(3), pawl.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	e := pawltest.RequireEnqueued(t, q, sendMail, mail{To: "ada", When: now, note: "y"})
	equal(t, job.ID, e.ID)
	equal(t, "fast", e.Queue)
	equal(t, int8(3), e.Priority)
	equal(t, pawl.Delayed, e.State)
	equal(t, time.Hour, e.NotBefore.Sub(e.Created))
}

// Rule: each call of RequireEnqueued matches another job.
func TestRequireEnqueuedNamesEachJobOnce(t *testing.T) {
	q := pawltest.New(t, nil)
	first, second := enqueue(t, q, "ada"), enqueue(t, q, "ada")
	equal(t, first, pawltest.RequireEnqueued(t, q, sendMail, mail{To: "ada"}).ID)
	equal(t, second, pawltest.RequireEnqueued(t, q, sendMail, mail{To: "ada"}).ID)
	message := failure(t, func(t testing.TB) { pawltest.RequireEnqueued(t, q, sendMail, mail{To: "ada"}) })
	equal(t, true, strings.Contains(message, "not enqueued, apart from jobs that are already matched"))
}

// Rule: the message about a missing job lists the enqueued jobs of any kind and their unusual
// settings.
func TestRequireEnqueuedListsWhatIsThere(t *testing.T) {
	q := pawltest.New(t, nil)
	equal(t, `pawltest: job not enqueued:
  count 7
nothing was enqueued`, failure(t, func(t testing.TB) { pawltest.RequireEnqueued(t, q, count, 7) }))

	if _, err := count.Enqueue(t.Context(), q, 8, pawl.OnQueue("slow"), pawl.Priority(-2), pawl.Delay(90*time.Second)); err != nil {
		t.Fatal(err)
	}
	raw := &pawl.Envelope{Kind: "raw", Payload: []byte{0xc1}}
	if err := withid.Enqueue(t.Context(), q, raw); err != nil {
		t.Fatal(err)
	}
	tags := pawl.Define[map[int]string]("tags")
	if _, err := tags.Enqueue(t.Context(), q, map[int]string{1: "one"}); err != nil {
		t.Fatal(err)
	}
	pawltest.RequireEnqueued(t, q, tags, map[int]string{1: "one"})
	message := failure(t, func(t testing.TB) { pawltest.RequireEnqueued(t, q, count, 7) })
	lines := strings.Split(message, "\n")
	equal(t, 6, len(lines))
	equal(t, "pawltest: job not enqueued, apart from jobs that are already matched:", lines[0])
	equal(t, "  count 7", lines[1])
	equal(t, "enqueued jobs:", lines[2])
	equal(t, `  count 8 on queue "slow" with priority -2 in 1m30s`, lines[3])
	equal(t, "  raw (1 bytes)", lines[4])
	equal(t, true, strings.HasPrefix(lines[5], "  tags ") && strings.HasSuffix(lines[5], " (matched)"))
}

// Rule: a long list is cut and says so.
func TestLongListsAreCut(t *testing.T) {
	q := pawltest.New(t, nil)
	for n := range 60 {
		enqueue(t, q, fmt.Sprint(n))
	}
	message := failure(t, func(t testing.TB) { pawltest.RequireNothingElse(t, q) })
	equal(t, 52, strings.Count(message, "\n")+1)
	equal(t, true, strings.HasSuffix(message, "\n  and 10 more"))
}

// Rule: nothing else was enqueued when every job was matched by one of the calls.
func TestRequireNothingElse(t *testing.T) {
	q := pawltest.New(t, nil)
	pawltest.RequireNothingElse(t, q)
	enqueue(t, q, "ada")
	if _, err := count.Enqueue(t.Context(), q, 1); err != nil {
		t.Fatal(err)
	}
	pawltest.RequireEnqueued(t, q, sendMail, mail{To: "ada"})
	equal(t, "pawltest: unexpected jobs:\n  count 1",
		failure(t, func(t testing.TB) { pawltest.RequireNothingElse(t, q) }))
	pawltest.Enqueued(t, q, count)
	pawltest.RequireNothingElse(t, q)
}

// Rule: a mistake in the test is reported as such: arguments that cannot be encoded, payloads of
// another type, invalid options.
func TestMistakesOfTheTest(t *testing.T) {
	q := pawltest.New(t, nil)
	channels := pawl.Define[chan int]("channels")
	for want, fn := range map[string]func(t testing.TB){
		"payload encoding": func(t testing.TB) { pawltest.RequireEnqueued(t, q, channels, make(chan int)) },
		"invalid Lease": func(t testing.TB) {
			pawltest.New(t, &memory.Options{Lease: time.Millisecond, Logger: hclog.NewNullLogger()})
		},
		"of count": func(t testing.TB) {
			if err := withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "count", Payload: []byte{0xc1}}); err != nil {
				t.Fatalf("%v", err)
			}
			pawltest.Enqueued(t, q, count)
		},
	} {
		message := failure(t, fn)
		if !strings.HasPrefix(message, "pawltest: ") || !strings.Contains(message, want) {
			t.Errorf("no %q in %q", want, message)
		}
	}
}
