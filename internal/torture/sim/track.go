package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// track follows one job.
type track struct {
	law
	id      pawl.ID
	payload []byte
	seq     uint64 // the last part of its order, once its event came or it was found in the file
	base    span   // its possible states at the last scan
	spans   []span // its possible states after each later instant with a call
	records []*record
	recent  []string    // the last records, for the report of a violation
	leases  []*lease    // in the order of the history
	cancels []int64     // instants in which it was cancelled
	retired atomic.Bool // it is permanently gone
}

// span has the possible states of a job at an instant and after it.
type span struct {
	at  int64
	set []known
}

// lease is one lease of a job in the history.
type lease struct {
	*record
	track   *track
	expires int64
	ended   int64 // 0 while the lease lasts
	how     string
	run     *run
	settles []*record
}

// explain continues the possible states of a job with the records until an instant. Crashed
// means that the process died in that instant. Otherwise no work is left in that instant.
// Fetching means that a fetch may have leased jobs before the crash, without an answer.
func (t *track) explain(to int64, crashed, fetching bool) error {
	records := t.records
	t.records = nil
	last := t.base
	if len(t.spans) > 0 {
		last = t.spans[len(t.spans)-1]
	}
	slices.SortStableFunc(records, func(a, b *record) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.begin, b.begin)) })
	for len(records) > 0 {
		at := records[0].at
		n := 1
		for n < len(records) && records[n].at == at {
			n++
		}
		before := t.all(last.set, last.at, at, false)
		set := t.linear(before, records[:n], at)
		if !crashed || at < to {
			set = t.all(set, at, at, true)
		}
		t.remember(records[:n])
		if len(set) == 0 {
			return fmt.Errorf("job %d: it was %v, and then no order of these calls explains their answers: %v\n%s", t.N, before, records[:n], t.story())
		}
		last = span{at, set}
		t.spans = append(t.spans, last)
		records = records[n:]
	}
	set := t.all(last.set, last.at, to, !crashed)
	if crashed {
		set = t.left(set, to, fetching)
	}
	t.spans = append(t.spans, span{to, set})
	return nil
}

// linear returns the possible states after some calls of one instant, in every possible order.
// A call without an answer may have had no effect.
func (t *track) linear(set []known, records []*record, at int64) (after []known) {
	type node struct {
		done uint64
		known
	}
	seen := make(map[node]bool)
	var visit func(n node)
	visit = func(n node) {
		if seen[n] {
			return
		}
		seen[n] = true
		complete := true
		for i, r := range records {
			if n.done&(1<<i) == 0 && r.end != never {
				complete = false
			}
		}
		if complete {
			after = add(after, n.known)
		}
		for _, k := range t.pass(nil, n.known, at, at, false) { // time passes in between
			visit(node{n.done, k})
		}
		for i, r := range records {
			if n.done&(1<<i) != 0 || !next(records, n.done, r) {
				continue
			}
			if k, ok := t.apply(n.known, r); ok {
				visit(node{n.done | 1<<i, k})
			}
		}
	}
	for _, k := range set {
		visit(node{0, k})
	}
	return after
}

// next reports whether a record may come next: all records that ended before its start are
// done.
func next(records []*record, done uint64, r *record) bool {
	for i, other := range records {
		if done&(1<<i) == 0 && other.end < r.begin {
			return false
		}
	}
	return true
}

// left returns the possible states of a job after a crash and the next open.
func (t *track) left(set []known, at int64, fetching bool) (after []known) {
	for _, k := range set {
		if k.State == pawl.Leased {
			after = add(after, t.crash(k, at))
			continue
		}
		after = add(after, k)
		if k.State != pawl.Ready || !fetching {
			continue
		}
		after = add(after, t.crash(k, at)) // leased without an answer
		if t.Effect != "" {
			after = add(after, t.done(k, at)) // or skipped
		}
	}
	return after
}

// found compares a job with the file: nil for an absent job.
func (t *track) found(e *pawl.Envelope) error {
	if e != nil && !t.same(e) {
		return fmt.Errorf("job %d is not as it was stored: %+v\n%s", t.N, e, t.story())
	}
	last := t.spans[len(t.spans)-1]
	set := slices.DeleteFunc(slices.Clone(last.set), func(k known) bool { return !k.is(e) })
	if len(set) == 0 {
		is := "is not in the file"
		if e != nil {
			is = fmt.Sprintf("is %s after %d attempts, %d crashes, %d failures, not before %s, cancelled %v, death %v",
				e.State, e.Attempts, e.Crashes, e.Failures, clock(e.NotBefore.UnixNano()), e.Cancelled, e.Death)
		}
		return fmt.Errorf("job %d %s, and should be one of %v\n%s", t.N, is, last.set, t.story())
	}
	t.base, t.spans = span{last.at, set}, nil
	t.retired.Store(set[0].gone)
	return nil
}

// same reports whether a job, apart from its state, is unchanged since it was stored.
func (t *track) same(e *pawl.Envelope) bool {
	return bytes.Equal(e.Payload, t.payload) && e.Kind == t.Kind && e.Queue == t.Queue && e.Origin == t.Queue && e.Priority == t.Priority &&
		e.MaxRetries == t.Retries && e.Timeout == t.Timeout && e.Retain == t.Retain && e.UniqueKey == t.Unique && e.IdempotencyKey == t.Effect
}

// at returns the possible states of a job right before or right after an instant since the
// last scan.
func (t *track) at(at int64, after bool) []known {
	last := t.base
	for _, s := range t.spans {
		if s.at < at || after && s.at == at {
			last = s
		}
	}
	return t.all(last.set, last.at, at, after)
}

func (t *track) remember(records []*record) {
	for _, r := range records {
		t.recent = append(t.recent, r.String())
	}
	if old := len(t.recent) - 30; old > 0 {
		t.recent = t.recent[old:]
	}
}

func (t *track) story() string {
	return fmt.Sprintf("  job %+v\n  %s", *t.Job, strings.Join(t.recent, "\n  "))
}
