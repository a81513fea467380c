package bolt

import (
	"cmp"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// watchList records where a fetch still has to look for jobs. A fetch looks at all of its queues
// once. If it finds nothing, it waits and then looks only at queues that a transaction changed.
// So a commit costs what it touches, no matter how many queues are waited for.
type watchList struct {
	order map[string]int // position of each queue in the request; nil if there are few queues

	began   bool    // the fetch has looked at all of its queues
	fresh   []asked // queues where a job may have become leasable since then
	repeats []asked // queues with a repeat suspect that must wait for another one
	changed bool    // the counts of a queue changed; matters to a fetch with a limit on its wait
	holdout int     // position of the queue that last kept such a fetch waiting

	// Findings of the current transaction. They count once it is durable.
	looked bool
	held   []asked // new repeats
}

// asked is a queue that a fetch names.
type asked struct {
	queue queueNumber
	place int // position in the request
}

// fewNames is the number of names up to which a linear search is used.
const fewNames = 8

func newWatchList(r *pawl.Request) (l watchList) {
	if len(r.Queues) > fewNames {
		l.order = make(map[string]int, len(r.Queues))
		for i, name := range slices.Backward(r.Queues) {
			l.order[name] = i
		}
	}
	return l
}

// place returns the position of a queue in a request, or -1 if the request does not name it.
func (l *watchList) place(r *pawl.Request, name string) int {
	if l.order == nil {
		return slices.Index(r.Queues, name)
	}
	if i, ok := l.order[name]; ok {
		return i
	}
	return -1
}

// due reports whether the fetch has anything to look at.
func (l *watchList) due(repeatFree bool) bool {
	return !l.began || l.changed || len(l.fresh) > 0 || repeatFree && len(l.repeats) > 0
}

// wake notifies a fetch of a change and reports whether the fetch has to look.
func (f *fetchCall) wake(c news) (woken bool) {
	l := &f.watchList
	drains := f.request.Wait == pawl.WaitDrained || f.request.Wait == pawl.WaitFinished
	if !l.began || !c.ready && !drains || !c.all && !driver.Wants(&f.request, c.kind) {
		return false
	}
	place := l.place(&f.request, c.queue)
	if place < 0 {
		return false
	}
	l.changed = l.changed || drains
	if c.ready {
		l.fresh = append(l.fresh, asked{c.number, place})
	}
	return true
}

// looking returns the queues that a fetch must look at, ordered by number.
func (s *scheduler) looking(t *txn, f *fetchCall) (all []asked, err error) {
	l := &f.watchList
	if l.began {
		all = slices.Concat(l.fresh, l.repeats)
	} else {
		all = make([]asked, 0, len(f.request.Queues))
		for i, name := range f.request.Queues {
			n, ok, err := s.numbers.queue(t, name)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, asked{n, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.place, b.place)) })
	return slices.CompactFunc(all, func(a, b asked) bool { return a.queue == b.queue }), nil // a request may name a queue twice
}

// kindsOf returns the numbers of the kinds that a fetch requests, in ascending order. If all is
// true, it requests every kind. A kind with a damaged row is omitted if there are others.
func (s *scheduler) kindsOf(t *txn, r *pawl.Request) (kinds []kindNumber, all bool, err error) {
	if r.Kinds == nil {
		return nil, true, nil
	}
	kinds = make([]kindNumber, 0, len(r.Kinds))
	for _, name := range r.Kinds {
		n, ok, damage := s.numbers.kind(t, name)
		switch {
		case damage != nil:
			t.damagedRow(damage)
			err = damage
		case ok:
			kinds = append(kinds, n)
		}
	}
	if len(kinds) > 0 {
		err = nil
	}
	slices.Sort(kinds)
	return kinds, false, err
}

// wake notifies the waiting fetches of what the current transaction changed.
func (s *scheduler) wake(t *txn) {
	if len(s.fetches) > 0 {
		s.wakeFor(t.takeNews())
	}
}

// wakeFor notifies the waiting fetches of changes. It reports whether any of them has to look.
func (s *scheduler) wakeFor(changes []news) (woken bool) {
	for _, c := range changes {
		for _, f := range s.fetches {
			woken = f.wake(c) || woken
		}
	}
	return woken
}

// news is a changed line, or a changed queue if all is set. If ready is set, a job may have
// become leasable.
type news struct {
	queue, kind string
	all         bool
	number      queueNumber
	ready       bool
}

// takeNews returns the changes since its last call.
func (t *txn) takeNews() (changes []news) {
	for _, ln := range t.touched {
		row := t.lines[ln]
		if !row.news {
			continue
		}
		queue, err := t.rowOf(ln.queue)
		kind, kindErr := t.kindName(ln.kind)
		if err == nil { // otherwise no fetch can name it
			changes = append(changes, news{queue.name, kind, kindErr != nil, ln.queue, row.fresh})
		}
		row.news, row.fresh = false, false
	}
	for _, n := range t.resumed {
		changes = append(changes, news{queue: t.row(n).name, all: true, number: n, ready: true})
	}
	t.resumed = nil
	return changes
}

// endLooks applies what fetches found in a transaction, if the transaction is durable.
func (s *scheduler) endLooks(durable bool) {
	for _, f := range s.fetches {
		l := &f.watchList
		if l.looked && durable {
			l.began, l.changed, l.fresh, l.repeats = true, false, nil, l.held
		}
		l.looked, l.held = false, nil
	}
}

// numberCache caches the numbers of queues and kinds, so that a fetch of many queues reads
// their rows once and not in every call. The number of a name never changes.
type numberCache struct {
	known    map[string]uint32 // by key of the name
	unknown  map[string]bool   // keys of names that had no number at this sequence of numbers
	sequence uint64
}

// maxNumbers is the largest size of a numberCache.
const maxNumbers = 100_000

// queue returns the number of a queue.
func (c *numberCache) queue(t *txn, name string) (queueNumber, bool, error) {
	n, ok, err := c.of(t, queueByName, name, func() (uint32, bool, error) {
		n, ok, err := t.number(name)
		if err == nil && ok {
			_, err = t.rowOf(n) // a fetch must not wait for a damaged queue
		}
		return uint32(n), ok, err
	})
	return queueNumber(n), ok, err
}

// kind returns the number of a kind.
func (c *numberCache) kind(t *txn, name string) (kindNumber, bool, error) {
	n, ok, err := c.of(t, kindByName, name, func() (uint32, bool, error) {
		n, ok, err := t.kind(name)
		return uint32(n), ok, err
	})
	return kindNumber(n), ok, err
}

func (c *numberCache) of(t *txn, what byte, name string, find func() (uint32, bool, error)) (n uint32, ok bool, err error) {
	var buf [1 + pawl.MaxNameBytes]byte
	key := append(append(buf[:0], what), name...)
	if n, ok = c.known[string(key)]; ok {
		return n, true, nil
	}
	if sequence := t.queues.Sequence(); sequence != c.sequence {
		c.sequence, c.unknown = sequence, nil
	}
	if c.unknown[string(key)] {
		return 0, false, nil
	}
	if n, ok, err = find(); err != nil {
		return 0, false, err
	}
	if c.known == nil || len(c.known)+len(c.unknown) >= maxNumbers {
		c.known, c.unknown = make(map[string]uint32), nil
	}
	if ok {
		c.known[string(key)] = n
		return n, true, nil
	}
	if c.unknown == nil {
		c.unknown = make(map[string]bool)
	}
	c.unknown[string(key)] = true
	return 0, false, nil
}

// forget clears the cache after a transaction was undone, since that transaction may have
// assigned numbers.
func (c *numberCache) forget() { *c = numberCache{} }
