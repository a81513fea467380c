package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// span is the range of keys [from, to) in a bucket. If to is nil, there is no upper bound.
type span struct{ from, to []byte }

// prefixed returns the span of the keys with a prefix.
func prefixed(prefix []byte) span {
	to := bytes.Clone(prefix)
	for i := len(to) - 1; i >= 0; i-- {
		if to[i]++; to[i] != 0 {
			return span{prefix, to[:i+1]}
		}
	}
	return span{from: prefix}
}

// has reports whether a key is in the span.
func (s *span) has(key []byte) bool {
	return bytes.Compare(key, s.from) >= 0 && (s.to == nil || bytes.Compare(key, s.to) < 0)
}

// rows are the rows of a bucket that a list reads.
type rows struct {
	bucket *table
	spans  []span

	// merge is the order in which the spans are merged. If it is zero, the spans follow one
	// another.
	merge merge
	queue queueNumber // the queue of the lines; 0 for all queues
}

// mayBegin reports whether a list may continue after key. It rejects a key that cannot be a row of
// the list, if the spans show it.
func (r rows) mayBegin(key []byte) bool {
	switch {
	case r.merge == byLine:
		return len(key) == readyKeyWidth && (r.queue == 0 || queueOf(key) == r.queue)
	case len(r.spans) == 1:
		return r.spans[0].has(key)
	}
	return true
}

// merge is an order for the rows of several spans.
type merge uint8

const (
	noMerge merge = iota
	byDeath       // the spans are queues: order by time of death, then by queue
	byLine        // the spans are lines: order by queue, then in fetch order
)

// common returns how many leading bytes the keys of a span share.
func (m merge) common() int {
	if m == byLine {
		return lineWidth
	}
	return queueWidth
}

// compare compares the keys of two rows.
func (m merge) compare(a, b []byte) (order int) {
	if len(a) > m.common() && len(b) > m.common() && (m == byDeath || m == byLine && queueOf(a) == queueOf(b)) {
		order = bytes.Compare(a[m.common():], b[m.common():])
	}
	if order == 0 {
		order = bytes.Compare(a, b)
	}
	return order
}

// rowsOf returns the rows that hold the jobs of a filter, in the order of the filter.
func (s *store) rowsOf(f pawl.Filter) ([]rows, error) {
	if err := driver.CheckFilter(f); err != nil {
		return nil, err
	}
	if f.Order == pawl.OrderCreated || f.State == "" {
		return []rows{{bucket: s.jobs, spans: []span{{}}}}, nil
	}
	switch f.State {
	case pawl.Ready:
		var queue queueNumber
		if f.Queue != "" {
			n, known, err := s.number(f.Queue)
			if !known {
				n = noQueue
			}
			if err != nil {
				return nil, err
			}
			queue = n
		}
		return []rows{{s.ready, s.readySpans(queue), byLine, queue}, {bucket: s.delayed, spans: []span{{from: allBlocked}}}}, nil
	case pawl.Delayed:
		return []rows{{bucket: s.delayed, spans: []span{prefixed([]byte{waitsForTime})}}}, nil
	case pawl.Leased:
		return []rows{{bucket: s.leased, spans: []span{{}}}}, nil
	case pawl.Completed:
		return []rows{{bucket: s.completed, spans: []span{{}}}}, nil
	}
	spans, err := s.deadSpans(f)
	dead := rows{bucket: s.failed, spans: spans}
	if f.Order == pawl.OrderDied {
		dead.merge = byDeath
	}
	return []rows{dead}, err
}

// noQueue is a number that no queue has.
const noQueue queueNumber = 1<<32 - 1

// readySpans returns the spans of the ready jobs of a queue, one for each line. Queue 0 means
// all queues.
func (s *store) readySpans(queue queueNumber) (spans []span) {
	all := span{}
	if queue != 0 {
		all = prefixed(binary.BigEndian.AppendUint32(nil, uint32(queue)))
	}
	c := s.ready.Cursor()
	for k, _ := c.Seek(all.from); k != nil && all.has(k); {
		if len(k) < lanePrefix { // only damage leaves such keys
			k, _ = c.Next()
			continue
		}
		one := prefixed(bytes.Clone(k[:lineWidth]))
		spans = append(spans, one)
		if one.to == nil {
			break
		}
		if k, _ = c.Seek(one.to); bytes.Compare(k, one.to) < 0 {
			break // only in a damaged page
		}
	}
	return spans
}

// deadSpans returns the spans of the dead jobs of a filter. The keys begin with the queue and
// the time of death, so a filter by these reads no other rows.
func (s *store) deadSpans(f pawl.Filter) (spans []span, err error) {
	add := func(n queueNumber) {
		one := prefixed(binary.BigEndian.AppendUint32(nil, uint32(n)))
		if !f.DiedSince.IsZero() {
			one.from = appendTime(bytes.Clone(one.from), f.DiedSince)
		}
		if !f.DiedBefore.IsZero() {
			one.to = appendTime(binary.BigEndian.AppendUint32(nil, uint32(n)), f.DiedBefore)
		}
		spans = append(spans, one)
	}
	switch {
	case f.Queue != "":
		n, known, err := s.number(f.Queue)
		if known {
			add(n)
		}
		return spans, err
	case f.Order == pawl.OrderState && f.DiedSince.IsZero() && f.DiedBefore.IsZero():
		return []span{{}}, nil
	}
	err = s.eachQueue(func(n queueNumber, _ *queueRow) error {
		add(n)
		return nil
	})
	return spans, err
}

// rowWalk reads rows in order, in either direction.
type rowWalk struct {
	rows
	newest  bool // walk backward
	after   []byte
	cursors []*spanCursor // cursors that have not reached their end
	err     error
}

// spanCursor is the position of a walk in a span.
type spanCursor struct {
	span
	*bbolt.Cursor
	k, v []byte
}

// walk begins after the key after, or at the start if after is nil.
func (r rows) walk(after []byte, newest bool) *rowWalk {
	w := &rowWalk{rows: r, newest: newest, after: after}
	for _, one := range r.spans {
		w.cursors = append(w.cursors, &spanCursor{span: one})
	}
	if newest {
		slices.Reverse(w.cursors)
	}
	return w
}

// next returns the next row. A nil key means the end.
func (w *rowWalk) next() (k, v []byte) {
	best := -1
	for i := 0; i < len(w.cursors); {
		c := w.cursors[i]
		if c.Cursor == nil {
			w.start(c)
		}
		if c.k == nil || !c.has(c.k) {
			w.cursors = append(w.cursors[:i], w.cursors[i+1:]...)
			continue
		}
		if best < 0 || w.compare(c.k, w.cursors[best].k) < 0 {
			best = i
		}
		if w.merge == noMerge || w.merge == byLine && i > 0 && queueOf(c.from) != queueOf(w.cursors[0].from) {
			break // later spans follow in a later step
		}
		i++
	}
	if best < 0 {
		return nil, nil
	}
	c := w.cursors[best]
	k, v = c.k, c.v
	if w.newest {
		c.k, c.v = c.Prev()
	} else {
		c.k, c.v = c.Next()
	}
	if c.k != nil && c.has(c.k) && w.compare(c.k, k) <= 0 {
		w.err = fmt.Errorf("%w: the keys of a page are out of order", pawl.ErrCorrupt)
		return nil, nil
	}
	return k, v
}

// compare compares two cursors in the order of the walk.
func (w *rowWalk) compare(a, b []byte) int {
	if w.newest {
		return -w.merge.compare(a, b)
	}
	return w.merge.compare(a, b)
}

// queueWidth is the size of a queue number in bytes.
const queueWidth = 4

// start puts a cursor on the first row of its span after w.after.
func (w *rowWalk) start(c *spanCursor) {
	c.Cursor = w.bucket.Cursor()
	at := c.from
	if w.newest {
		at = c.to
	}
	if w.after != nil {
		behind := w.after
		if n := w.merge.common(); w.merge == byDeath || w.merge == byLine && len(c.from) == n && bytes.HasPrefix(w.after, c.from[:queueWidth]) {
			behind = append(bytes.Clone(c.from[:n]), w.after[min(n, len(w.after)):]...) // the corresponding place in this span
		}
		if further := bytes.Compare(behind, at) > 0; at == nil || further != w.newest {
			at = behind
		}
	}
	switch {
	case !w.newest:
		for c.k, c.v = c.Seek(at); c.k != nil && w.after != nil && w.compare(c.k, w.after) <= 0; {
			c.k, c.v = c.Next()
		}
	case at == nil:
		c.k, c.v = c.Last()
	default:
		if c.k, c.v = c.Seek(at); c.k == nil {
			c.k, c.v = c.Last()
		}
		for c.k != nil && (c.to != nil && bytes.Compare(c.k, c.to) >= 0 || w.after != nil && w.compare(c.k, w.after) <= 0) {
			c.k, c.v = c.Prev()
		}
	}
}
