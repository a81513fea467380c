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
	order map[string]int // the place of each queue in the request; nil when there are few

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

// wake tells a fetch of a change, and reports whether it has to look.
func (f *fetchCall) wake(c news) (woken bool) {
	l := &f.lookout
	drains := f.request.Wait == pawl.WaitDrained || f.request.Wait == pawl.WaitFinished
	if !l.began || !c.ready && !drains || !c.all && !f.request.Wants(c.kind) {
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

// looking returns the queues that a fetch must look at, by their numbers.
func (s *scheduler) looking(t *txn, f *fetchCall) (all []asked, err error) {
	l := &f.lookout
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
	return slices.CompactFunc(all, func(a, b asked) bool { return a.queue == b.queue }), nil // a queue may be named twice
}

// kindsOf returns the numbers of the kinds that a fetch asks for, in ascending order. All says
// that it asks for every kind. A kind whose row is damaged is left out beside others.
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

// wake tells the fetches that wait what a transaction under way has changed.
func (s *scheduler) wake(t *txn) {
	if len(s.fetches) > 0 {
		s.wakeFor(t.takeNews())
	}
}

// wakeFor tells the fetches that wait of changes. It reports whether one of them has to look.
func (s *scheduler) wakeFor(changes []news) (woken bool) {
	for _, c := range changes {
		for _, f := range s.fetches {
			woken = f.wake(c) || woken
		}
	}
	return woken
}

// news is a line that has changed, or with all set a queue. Ready says that a job may have become
// ready to lease.
type news struct {
	queue, kind string
	all         bool
	number      queueNumber
	ready       bool
}

// takeNews returns what has changed since it was called last.
func (t *txn) takeNews() (changes []news) {
	for _, ln := range t.touched {
		row := t.lines[ln]
		if !row.news {
			continue
		}
		queue, err := t.rowOf(ln.queue)
		kind, kindErr := t.kindName(ln.kind)
		if err == nil { // otherwise nobody can ask for it
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

// numberCache knows the numbers of queues and kinds, so that a fetch of many queues reads their
// names once and not with each call. A name keeps its number for ever.
type numberCache struct {
	known    map[string]uint32 // by the keys of the names
	unknown  map[string]bool   // keys of names that had no number at this sequence of numbers
	sequence uint64
}

// maxNumbers bounds a numberCache.
const maxNumbers = 100_000

// queue finds the number of a queue.
func (c *numberCache) queue(t *txn, name string) (queueNumber, bool, error) {
	n, ok, err := c.of(t, queueByName, name, func() (uint32, bool, error) {
		n, ok, err := t.number(name)
		if err == nil && ok {
			_, err = t.rowOf(n) // a damaged one must not be waited for
		}
		return uint32(n), ok, err
	})
	return queueNumber(n), ok, err
}

// kind finds the number of a kind.
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

// forget is for a transaction that was undone: it may have given numbers.
func (c *numberCache) forget() { *c = numberCache{} }
