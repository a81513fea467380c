package bolt

import (
	"cmp"
	"slices"

	"github.com/gopawl/pawl"
)

// lookout is where a fetch has yet to look for jobs. It looks at all of its queues once. If
// it finds nothing there it waits, and from then on looks only at queues that a transaction
// has changed: a commit costs what it touches, however many queues somebody waits for.
type lookout struct {
	order map[string]int // the place of each name in the request; nil when there are few

	began   bool    // it has looked at all of its queues
	fresh   []asked // queues in which a job may have become ready to lease since then
	repeats []asked // queues with a job that crashed twice or more, which must wait for another one
	changed bool    // the counts of a queue have changed; matters to a fetch that does not wait for ever
	holdout int     // the place of the queue that last kept such a fetch waiting

	// What the transaction under way has found. It counts once that is durable.
	looked bool
	held   []asked // the new repeats
}

// asked is a queue that a fetch names.
type asked struct {
	queue queueNumber
	place int // in the request
}

// fewNames is up to how many names are compared one by one.
const fewNames = 8

func newLookout(r *pawl.Request) (l lookout) {
	if len(r.Queues) > fewNames {
		l.order = make(map[string]int, len(r.Queues))
		for i, name := range slices.Backward(r.Queues) {
			l.order[name] = i
		}
	}
	return l
}

// place returns the place of a queue in a request, -1 when it is not asked for.
func (l *lookout) place(r *pawl.Request, name string) int {
	if l.order == nil {
		return slices.Index(r.Queues, name)
	}
	if i, ok := l.order[name]; ok {
		return i
	}
	return -1
}

// due reports whether there is anything to look at.
func (l *lookout) due(repeatFree bool) bool {
	return !l.began || l.changed || len(l.fresh) > 0 || repeatFree && len(l.repeats) > 0
}

// wake tells a fetch that a queue has changed, and reports whether it has to look.
func (f *fetchCall) wake(c news) (woken bool) {
	l := &f.lookout
	drains := f.request.Wait == pawl.WaitDrained || f.request.Wait == pawl.WaitFinished
	if !l.began || !c.ready && !drains {
		return false
	}
	place := l.place(&f.request, c.name)
	if place < 0 {
		return false
	}
	l.changed = l.changed || drains
	if c.ready {
		l.fresh = append(l.fresh, asked{c.queue, place})
	}
	return true
}

// looking returns the queues that a fetch must look at, by their numbers.
func (s *scheduler) looking(t *txn, f *fetchCall) (all []asked, err error) {
	l := &f.lookout
	if l.began {
		all = slices.Concat(l.fresh, l.repeats)
	} else {
		all = make([]asked, 0, len(f.request.Queues))
		for i, name := range f.request.Queues {
			n, ok, err := s.numbers.of(t, name)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, asked{n, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.place, b.place)) })
	return slices.CompactFunc(all, func(a, b asked) bool { return a.queue == b.queue }), nil // a queue may be named twice
}

// wake tells the fetches that wait which queues a transaction has touched. It reports whether
// one of them has something to look at.
func (s *scheduler) wake(t *txn) (woken bool) {
	return s.wakeFor(t.takeNews())
}

func (s *scheduler) wakeFor(changes []news) (woken bool) {
	for _, c := range changes {
		for _, f := range s.fetches {
			woken = f.wake(c) || woken
		}
	}
	return woken
}

// news is a queue that has changed. Ready says that a job may have become ready to lease.
type news struct {
	name  string
	queue queueNumber
	ready bool
}

// takeNews returns the queues that have changed since it was called last.
func (t *txn) takeNews() (all []news) {
	for _, n := range t.touched {
		if row := t.rows[n]; row != nil && row.news {
			all = append(all, news{row.name, n, row.fresh})
			row.news, row.fresh = false, false
		}
	}
	return all
}

// endLooks takes over what fetches have seen in a transaction, if that is durable.
func (s *scheduler) endLooks(durable bool) {
	for _, f := range s.fetches {
		l := &f.lookout
		if l.looked && durable {
			l.began, l.changed, l.fresh, l.repeats = true, false, nil, l.held
		}
		l.looked, l.held = false, nil
	}
}

// numberCache knows the numbers of queues, so that a fetch of many queues reads their names
// once and not with each call. A queue keeps its number for ever.
type numberCache struct {
	known    map[string]queueNumber
	unknown  map[string]bool // names that had no number at this sequence of numbers
	sequence uint64
}

// maxNumbers bounds a numberCache.
const maxNumbers = 100_000

func (c *numberCache) of(t *txn, name string) (n queueNumber, ok bool, err error) {
	if n, ok = c.known[name]; ok {
		return n, true, nil
	}
	if sequence := t.queues.Sequence(); sequence != c.sequence {
		c.sequence, c.unknown = sequence, nil
	}
	if c.unknown[name] {
		return 0, false, nil
	}
	if n, ok, err = t.number(name); err == nil && ok {
		_, err = t.rowOf(n) // a damaged one must not be waited for
	}
	if err != nil {
		return 0, false, err
	}
	if len(c.known)+len(c.unknown) >= maxNumbers {
		c.forget()
	}
	if c.known == nil {
		c.known = make(map[string]queueNumber)
	}
	if c.unknown == nil {
		c.unknown = make(map[string]bool)
	}
	if ok {
		c.known[name] = n
	} else {
		c.unknown[name] = true
	}
	return n, ok, nil
}

// forget is for a transaction that was undone: it may have given numbers.
func (c *numberCache) forget() { *c = numberCache{} }
