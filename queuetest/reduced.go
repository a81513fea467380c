package queuetest

import (
	"bytes"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
)

// Reduced says which rules of the contract a queue keeps only in part, because of its broker. The cases check the
// values here instead of the rule, such as a bound instead of an exact time. If the queue gives up a rule, the cases of
// the rule do not apply, and the group "reduced" checks what the queue does instead.
type Reduced struct {
	// Delays is how much later than its time a delayed job may become ready.
	Delays time.Duration

	// Waits is how long a fetch may take to notice that its work has ended, or that there is a job of a new kind.
	Waits time.Duration

	// Looks is how long a fetch that does not wait may look for jobs. It then also gets what becomes ready in that
	// time.
	Looks time.Duration

	// Lags says that a fetch which does not wait may miss a job that became ready a moment before.
	Lags bool

	// Orphans is how much longer than its length the lease of a client that is gone holds.
	Orphans time.Duration

	// Unordered says that jobs of several kinds, retries, and released jobs come in any order, and that waiting
	// fetches are served in any order. Cases then require the same jobs in any order. New jobs of one kind still
	// come in the order in which they were stored.
	Unordered bool

	// NoSuspects says that a job which crashed is fetched like any other.
	NoSuspects bool

	// AnyID says that the queue accepts a job with the ID of one that it holds, and then holds both.
	AnyID bool

	// IDs is how long after its enqueue the ID of a job stays taken, although the job is gone.
	IDs time.Duration

	// OwnClock says that the clock of the broker decides. Settings.Now has no effect.
	OwnClock bool

	// MaxName is the longest name, in bytes of any value, that a queue and its kind may both have, if that is less than
	// the contract says.
	MaxName int
}

// maxName is the longest name of any bytes that the queue takes.
func (f *fixture) maxName() int {
	if n := f.config.Reduced.MaxName; n > 0 {
		return n
	}
	return pawl.MaxNameBytes
}

// comeAs requires jobs of these kinds in this order, or in any order if the queue has none.
func (f *fixture) comeAs(leases []*pawl.Lease, want, what string) {
	f.Helper()
	got := kinds(leases)
	if f.config.Reduced.Unordered {
		got, want = sorted(got), sorted(want)
	}
	equal(f, got, want, what)
}

func sorted(text string) string {
	all := strings.Split(text, "")
	slices.Sort(all)
	return strings.Join(all, "")
}

// sameOrder is sameJobs, in any order if the queue has none.
func (f *fixture) sameOrder(got, want []pawl.ID, what string) {
	f.Helper()
	if f.config.Reduced.Unordered {
		byID := func(a, b pawl.ID) int { return bytes.Compare(a[:], b[:]) }
		got, want = slices.SortedFunc(slices.Values(got), byID), slices.SortedFunc(slices.Values(want), byID)
	}
	f.sameJobs(got, want, what)
}

// due lets time pass until something is due, and for as long as the queue may be late.
func (f *fixture) due(d time.Duration) { f.pass(d + f.config.Reduced.Delays) }

// catchUp lets a queue that lags do what it has begun.
func (f *fixture) catchUp() {
	if f.config.Reduced.Lags {
		synctest.Wait()
	}
}

// long is a time in which nothing may happen. A broker does much by itself meanwhile.
func (f *fixture) long() time.Duration {
	if f.config.Reduced.Waits > 0 {
		return 10 * time.Hour
	}
	return 1000 * time.Hour
}

// until lets time pass until right before something is due, so that a fetch does not find it yet.
func (f *fixture) until(due time.Time) { f.pass(time.Until(due) - 1 - f.config.Reduced.Looks) }

// onTime requires that something which was due at a time happened then, or as late as the queue may be.
func (f *fixture) onTime(due time.Time, what string) {
	f.Helper()
	late := time.Since(due)
	if r := f.config.Reduced; late < 0 || late > r.Delays+r.Waits+r.Looks {
		f.Fatalf("%s: it was %v late", what, late)
	}
}

// within requires a time until a fetch, which may be longer by the time that the fetch looks.
func (f *fixture) within(got, want time.Duration, what string) {
	f.Helper()
	if got < want || got > want+f.config.Reduced.Looks {
		f.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

var reducedTests = []test{
	newTest("a batch", "A queue whose calls take fewer jobs refuses a larger batch with ErrBatchTooLarge, and stores none of it.", func(f *fixture) {
		f.is(f.try(newBatch(f.config.MaxBatch+1)...), pawl.ErrBatchTooLarge, "one job too many")
		equal(f, len(f.fetch(9)), 0, "jobs stored")
		f.ok(f.try(newBatch(f.config.MaxBatch)...), "the most jobs")
		equal(f, len(f.fetch(f.config.MaxBatch+1)), f.config.MaxBatch, "jobs stored")
	}).unless(batches),
	newTest("a job that crashed", "A queue that does not isolate jobs which crashed grants them like any other job.", func(f *fixture) {
		ids := []pawl.ID{f.add().ID, f.add().ID}
		for crashes := range 3 {
			leases := f.request(pawl.Request{Max: 2, Ahead: 2})
			equal(f, len(leases), 2, "jobs without an idle slot")
			f.sameOrder([]pawl.ID{leases[0].ID, leases[1].ID}, ids, "jobs")
			equal(f, [2]int{leases[0].Crashes, leases[1].Crashes}, [2]int{crashes, crashes}, "crashes")
			f.expire(leases[0])
		}
	}).unless(suspecting),
	newTest("an ID that is taken", "A queue that does not know its IDs holds every job that it accepts, also two with one ID.", func(f *fixture) {
		id := f.add().ID
		f.add(func(e *pawl.Envelope) { e.ID = id })
		for _, l := range f.leases(2) {
			equal(f, l.ID, id, "ID")
			f.ack(l)
		}
	}).unless(knowingIDs),
	newTest("a long name", "A queue whose names are shorter refuses longer ones with an *InvalidError, and stores nothing.", func(f *fixture) {
		longest := strings.Repeat("\xff", f.maxName())
		e := f.add(onQueue(longest), of(longest))
		equal(f, f.lease(longest).ID, e.ID, "job")
		longest = strings.Repeat("\xff", pawl.MaxNameBytes)
		f.invalid(f.try(&pawl.Envelope{Queue: longest, Kind: longest}), "enqueue")
		equal(f, len(f.fetch(9, longest)), 0, "jobs stored")
	}).needing(shortNames),
}
