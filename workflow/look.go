package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A branch may receive a signal and then lose a race. So each scope knows which signals it has received but not used. A
// scope uses its signals when it makes a call with an effect: a step, a child, or a change of a shared value. It shares
// them with the branches that it begins, and with the scopes that wait for its end. The commit that decides a race
// gives back the losers' unused signals: each is unread again, in its old place, and its Wait ends with [ErrAbandoned].

// look is a Wait that received a signal, or may be about to.
type look struct {
	seq    uint32 // seq of its entry
	owner  *scope
	before uint32 // seq of the owner's last call before it

	used bool
	back bool // the signal was given back
}

// acts records the effect of a call of this kind on the scope's received signals. The caller
// holds the lock.
func (s *scope) acts(kind EntryKind) {
	switch kind {
	case KindStep, KindStepTx, KindChild:
		s.use()
	}
}

// use records that the scope has used the signals that it has received. The caller holds the lock.
func (s *scope) use() {
	for l := range s.looks {
		l.used = true
	}
	clear(s.looks)
}

// got records a signal. The root cannot lose a race. The caller holds the lock.
func (s *scope) got(seq uint32) *look {
	l := &look{seq: seq, owner: s, before: s.last}
	if s.name != "" {
		s.looks[l] = true
	}
	return l
}

// passOn shares the signals of this scope with another scope. The caller holds the lock.
func (s *scope) passOn(to *scope) {
	for l := range s.looks {
		switch {
		case l.back:
			if to.abandoned {
				to.looks[l] = true
			}
		case l.used:
			delete(s.looks, l)
		case to.name == "": // the root cannot lose a race
			l.used = true
		default:
			to.looks[l] = true
		}
	}
}

// unusedLooks returns the looks of losing scopes whose signals no other scope has. A Wait in
// progress counts, since it may take a signal before the race is decided. The caller holds the lock.
func (x *execution) unusedLooks(won *raceResult) (looks []*look) {
	elsewhere := make(map[*look]bool)
	for _, s := range x.scopes {
		if !won.lost(s.name) {
			for l := range s.looks {
				elsewhere[l] = true
			}
		}
	}
	found := make(map[*look]bool)
	for _, s := range x.scopes {
		if !won.lost(s.name) {
			continue
		}
		if e := s.current; e != nil && e.Kind.receives() {
			s.got(e.seq)
		}
		for l := range s.looks {
			if !l.used && !elsewhere[l] && !found[l] {
				found[l] = true
				looks = append(looks, l)
			}
		}
	}
	return looks
}

// lostRace reports, on the queue's goroutine, whether another branch has won.
func (s *scope) lostRace() bool {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	return s.abandoned
}

// unread gives back signals as part of the commit that decides a race.
type unread struct {
	run   pawl.ID
	looks []*look

	now  time.Time
	row  *runRow // nil if there is nothing to give back
	back []takenSignal
}

// takenSignal is a signal to give back, with the entry of the Wait that received it.
type takenSignal struct {
	look    *look
	entry   *entry
	name    string
	payload []byte
	freed   int64 // bytes freed in the journal
}

// find reads which of the looks have a signal. A Wait in progress may have none, or may have
// lost it to an earlier race.
func (u *unread) find(r rows, now time.Time) (err error) {
	u.now, u.row, u.back = now, nil, nil
	for _, l := range u.looks {
		e, err := r.entry(u.run, l.seq)
		if err != nil {
			return err
		}
		if e == nil || !e.Kind.receives() || e.State != EntryDone || e.Signal == 0 {
			continue
		}
		name, payload, err := r.received(u.run, e)
		if err != nil {
			return err
		}
		u.back = append(u.back, takenSignal{look: l, entry: e, name: name, payload: payload, freed: e.weight()})
	}
	if len(u.back) > 0 {
		u.row, err = r.mustRun(u.run)
	}
	return err
}

// apply stores the signals in their old places and ends the Waits. It counts the signals in the
// row of the run, which the caller writes.
func (u *unread) apply(r rows) error {
	for i := range u.back {
		b := &u.back[i]
		e := b.entry
		key := signalKey(u.run, b.name, e.Signal)
		if other, err := r.get(tableSignals, key); other != nil || err != nil {
			return fmt.Errorf("%w: run %s has signal %d twice", pawl.ErrCorrupt, u.run, e.Signal)
		}
		if err := r.put(tableSignals, key, b.payload); err != nil {
			return err
		}
		u.row.Unread++
		if e.Apart {
			if err := r.delete(tableBlobs, seqKey(u.run, e.seq)); err != nil {
				return err
			}
		}
		e.fail(fmt.Errorf("the signal was given back: %w", ErrAbandoned), u.now)
		e.Apart, e.Size = false, 0
		b.freed -= e.weight()
		var own journal
		own.add(u.run, e)
		if err := own.apply(r); err != nil {
			return err
		}
	}
	if u.row == nil {
		return nil
	}
	return r.putRun(u.run, u.row)
}

// done records what was given back, once that is durable. The caller holds the lock.
func (u *unread) done(x *execution) {
	for _, b := range u.back {
		b.look.back = true
		b.look.owner.last = min(b.look.owner.last, b.look.before)
		x.bytes -= b.freed
	}
}

// received returns the name and the payload of the signal that a call has received.
func (r rows) received(run pawl.ID, e *entry) (name string, payload []byte, err error) {
	if payload, err = r.value(run, e); err != nil || e.Kind == KindWait {
		return e.Name, payload, err
	}
	var got selection
	if err := driver.DecodePayload(payload, &got); err != nil || got.Selected < 0 || got.Selected >= len(got.Cases) {
		return "", nil, fmt.Errorf("%w: the result of %s of run %s", pawl.ErrCorrupt, e, run)
	}
	return strings.TrimPrefix(got.Cases[got.Selected], signalCase), got.Payload, nil
}

// givenBack reports whether the entry is a Wait whose signal was given back.
func (e *entry) givenBack() bool {
	return e.Kind.receives() && e.State == EntryFailed && e.Signal != 0
}

// gaveBack reports whether a signal that the scope had received was given back. The caller
// holds the lock.
func (s *scope) gaveBack() bool {
	for l := range s.looks {
		if l.back {
			return true
		}
	}
	return false
}

// caughtUp records that a scope has returned from all of its calls in the journal. The caller
// holds the lock.
func (x *execution) caughtUp(s *scope) {
	if s.at >= len(s.entries) && x.behind[s.name] {
		delete(x.behind, s.name)
		x.wakeCaughtUp()
	}
}

// forgetBehind drops the scopes that will never begin, once the function of a scope has returned. The caller holds the
// lock.
func (x *execution) forgetBehind(by *scope) {
	if len(x.behind) == 0 {
		return
	}
	for name := range x.behind {
		if !by.covers(name) {
			continue
		}
		if nearest := x.nearest(name); nearest == nil || nearest.ended {
			delete(x.behind, name)
		}
	}
	x.wakeCaughtUp()
}

// nearest returns the scope with a name, or its innermost ancestor that has begun. The caller holds
// the lock.
func (x *execution) nearest(name string) (nearest *scope) {
	for _, s := range x.scopes {
		if s.covers(name) && (nearest == nil || len(s.name) > len(nearest.name)) {
			nearest = s
		}
	}
	return nearest
}

func (x *execution) wakeCaughtUp() {
	if len(x.behind) == 0 {
		x.wakeLocked(func(s *scope) bool { return s.waits.branches })
	}
}

// covers reports whether a name is that of the scope or of a branch below it.
func (s *scope) covers(name string) bool {
	below, ok := strings.CutPrefix(name, s.name)
	return ok && (s.name == "" || below == "" || below[0] == '/')
}
