package queuetest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Lister is a queue whose jobs can be listed in pages.
type Lister interface {
	// ListParts reads at most max jobs that a filter chooses, after a cursor. A bad filter, max
	// or cursor gives pawl.ErrInvalid.
	ListParts(ctx context.Context, f pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error)
}

// Finder is a queue whose jobs can be found by a part of their IDs.
type Finder interface {
	// FindIDs returns the IDs that begin or end with a part, at most a number of them, after a cursor.
	FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error)
}

func (f *fixture) lister() Lister { return able[Lister](f) }
func (f *fixture) finder() Finder { return able[Finder](f) }

// pages lists the jobs that a filter chooses in pages of a size. It calls between after each
// page.
func (f *fixture) pages(filter pawl.Filter, parts driver.Parts, size int, between func()) (jobs []*pawl.Envelope) {
	f.Helper()
	for after := ""; ; {
		page, err := f.lister().ListParts(f.Context(), filter, parts, after, size)
		f.ok(err, "list")
		if len(page.Jobs) > size {
			f.Fatalf("a page of %d jobs, at most %d were asked for", len(page.Jobs), size)
		}
		for _, listed := range page.Jobs {
			f.ok(listed.Err, "a listed job")
			jobs = append(jobs, listed.Job)
		}
		if after = page.Next; after == "" {
			return jobs
		}
		plain := strings.Trim(after, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
		equal(f, plain && after[0] != '-', true, "the cursor "+after+" is safe")
		if between != nil {
			between()
		}
	}
}

// byTheirEnd has all states in an order in which jobs can be brought into them one by one.
var byTheirEnd = []pawl.State{pawl.Leased, pawl.Dead, pawl.Completed, pawl.Delayed, pawl.Ready}

var listTests = []test{
	newTest("in pages", "The pages of a list are the iteration over the same filter, whatever their size.", func(f *fixture) {
		f.lister()
		for _, state := range byTheirEnd {
			for i := range 3 {
				f.held(state, on([]string{"a", "b"}[i%2]), priority(int8(i)), header("h", "v"))
				f.pass(time.Second)
			}
		}
		filters := []pawl.Filter{{}, {Queue: "a"}, {Order: pawl.OrderCreated}, {Newest: true}, {State: pawl.Dead, Order: pawl.OrderDied}, {Queue: "none"}}
		for _, state := range pawl.States() {
			filters = append(filters, pawl.Filter{State: state}, pawl.Filter{State: state, Newest: true})
		}
		for _, filter := range filters {
			want := f.list(filter)
			for _, size := range []int{1, 2, 7, pawl.MaxListed} {
				got := f.pages(filter, driver.AllParts, size, nil)
				equal(f, len(got), len(want), "jobs")
				for i, e := range got {
					f.same(e, want[i], "a job of the list")
				}
			}
		}
	}),
	newTest("parts", "A list reads only the parts that it is asked for, and the rest of each job whole.", func(f *fixture) {
		f.lister()
		id := f.add(header("h", "v"), func(e *pawl.Envelope) { e.Payload, e.MaxRetries = make([]byte, 3000), 9 }).ID
		for range 3 {
			f.nack(f.lease(), 0)
			f.pass(time.Second)
		}
		whole := f.must(id)
		equal(f, len(whole.History), 3, "entries of the history")
		for parts, change := range map[driver.Parts]func(*pawl.Envelope){
			driver.AllParts:    func(*pawl.Envelope) {},
			driver.PartHistory: func(e *pawl.Envelope) { e.Payload = nil },
		} {
			want := *whole
			change(&want)
			f.same(f.pages(pawl.Filter{}, parts, 9, nil)[0], &want, "the job")
		}
		last := f.pages(pawl.Filter{}, driver.PartLastFailure|driver.PartPayload, 9, nil)[0]
		equal(f, len(last.History), 1, "entries of the history")
		equal(f, last.LastError(), whole.LastError(), "the last error")
		equal(f, len(last.Payload), 3000, "bytes of the payload")
		equal(f, last.Headers["h"], "v", "header")
		equal(f, last.Attempts, 3, "attempts")
	}),
	newTest("while jobs move", "A cursor stays valid when its job is gone, and the pages after it have each unchanged job once.", func(f *fixture) {
		f.lister()
		batch := newBatch(40)
		for i, e := range batch {
			e.Queue = []string{"touched", "untouched"}[i%2]
		}
		f.enqueue(batch...)
		var seen []pawl.ID
		for _, e := range f.pages(pawl.Filter{}, 0, 3, func() {
			for _, l := range f.fetch(2, "touched") {
				f.ack(l)
			}
		}) {
			if e.Queue == "untouched" {
				seen = append(seen, e.ID)
			}
		}
		var want []pawl.ID
		for _, e := range batch {
			if e.Queue == "untouched" {
				want = append(want, e.ID)
			}
		}
		f.sameJobs(seen, want, "unchanged jobs")
	}),
	newTest("refused",
		"A list of no job or of too many, of a filter that is not valid, or after a cursor of another list gives "+
			"ErrInvalid.", func(f *fixture) {
			q := f.lister()
			f.add()
			f.add()
			page, err := q.ListParts(f.Context(), pawl.Filter{State: pawl.Ready}, 0, "", 1)
			f.ok(err, "list")
			for _, bad := range []struct {
				what   string
				filter pawl.Filter
				after  string
				max    int
			}{
				{"no job", pawl.Filter{}, "", 0},
				{"too many jobs", pawl.Filter{}, "", pawl.MaxListed + 1},
				{"an unknown state", pawl.Filter{State: "sleeping"}, "", 1},
				{"an unknown order", pawl.Filter{Order: "random"}, "", 1},
				{"a cursor of no list", pawl.Filter{}, "x", 1},
				{"a cursor of another list", pawl.Filter{State: pawl.Dead}, page.Next, 1},
			} {
				_, err := q.ListParts(f.Context(), bad.filter, 0, bad.after, bad.max)
				f.is(err, pawl.ErrInvalid, bad.what)
			}
		}),
	tooLate("too late", "A list or a search whose context has ended gives its error. After Close, both give ErrClosed.",
		context.Canceled, func(f *fixture) []func(context.Context) error {
			q, find, id := f.lister(), f.finder(), f.add().ID
			return []func(context.Context) error{
				func(ctx context.Context) error { _, err := q.ListParts(ctx, pawl.Filter{}, 0, "", 1); return err },
				func(ctx context.Context) error { _, _, err := find.FindIDs(ctx, id.String(), "", 1); return err },
			}
		}),
	newTest("IDs by a part",
		"A search returns the IDs that begin or end with a part of four digits or more, with or without dashes, in upper "+
			"or lower case, and no more than it is asked for.", func(f *fixture) {
			q := f.finder()
			var ids []pawl.ID
			for _, last := range []byte{0x1a, 0x2b, 0x2b} {
				id := pawl.NewID(time.Now())
				id[14], id[15] = 0xcd, last
				id[13] = byte(len(ids)) // no two are equal
				ids = append(ids, f.add(func(e *pawl.Envelope) { e.ID = id }).ID)
			}
			f.abandon(f.leases(3)[0])
			for part, want := range map[string][]pawl.ID{
				"cd1a": {ids[0]}, "CD1A": {ids[0]}, "cd2b": {ids[1], ids[2]}, "ffff": nil,
				ids[1].String(): {ids[1]}, strings.ReplaceAll(ids[2].String(), "-", ""): {ids[2]},
			} {
				got, _, err := q.FindIDs(f.Context(), part, "", 9)
				f.ok(err, "search")
				sortIDs(got)
				sortIDs(want)
				f.sameJobs(got, want, "IDs of "+part)
			}
			got, _, err := q.FindIDs(f.Context(), "cd2b", "", 1)
			f.ok(err, "search")
			equal(f, len(got) == 1 && slices.Contains(ids[1:], got[0]), true, "one of the IDs")
			got, _, err = q.FindIDs(f.Context(), ids[0].String()[:4], "", 9)
			f.ok(err, "search")
			equal(f, len(got), 3, "IDs by their beginning")
			for _, part := range []string{"", "cd1", "cd1g", "cd 1a"} {
				_, _, err := q.FindIDs(f.Context(), part, "", 9)
				f.is(err, pawl.ErrInvalid, "a search for "+part)
			}
		}),
	newTest("IDs by a part, in portions",
		"A search for the end of an ID compares a bounded number of IDs a call, and the cursors of its calls lead to every ID "+
			"once. A search does not continue another.", func(f *fixture) {
			q := f.finder()
			const jobs = driver.MaxSearched + 10
			var want []pawl.ID
			for begin := 0; begin < jobs; begin += 5_000 {
				batch := newBatch(min(5_000, jobs-begin))
				for i, e := range batch {
					e.ID = pawl.NewID(time.Now())
					e.ID[14], e.ID[15] = 0xcd, 0x1a
					if at := begin + i; at == 0 || at == 7_000 || at == jobs-1 {
						e.ID[15] = 0x2b
						want = append(want, e.ID)
					}
				}
				f.enqueue(batch...)
			}
			got, next, err := q.FindIDs(f.Context(), "cd2b", "", 9)
			f.ok(err, "search")
			equal(f, len(got) < len(want) && next != "", true, "the search goes on")
			_, _, err = q.FindIDs(f.Context(), "cd1a", next, 9)
			f.is(err, pawl.ErrInvalid, "a search for another part")
			rest, next, err := q.FindIDs(f.Context(), "cd2b", next, 9)
			f.ok(err, "search")
			equal(f, next, "", "the cursor at the end")
			got = append(got, rest...)
			sortIDs(got)
			sortIDs(want)
			f.sameJobs(got, want, "found IDs")
			got, next, err = q.FindIDs(f.Context(), "cd2b", "", 1)
			f.ok(err, "search")
			equal(f, len(got) == 1 && next == "", true, "a search that has found all that it may")
			got, _, err = q.FindIDs(f.Context(), want[0].String()[:13], "", 2*jobs)
			f.ok(err, "search")
			equal(f, len(got) > 1, true, "IDs by their beginning")
		}),
}

func sortIDs(ids []pawl.ID) {
	slices.SortFunc(ids, func(a, b pawl.ID) int { return bytes.Compare(a[:], b[:]) })
}
