package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// last judges the end of a case, after the drain: only dead jobs and records are left, and
// everything that happened has a cause.
func (w *world) last() error {
	for e, err := range w.proc.q.Jobs(context.Background(), pawl.Filter{}) {
		if err != nil {
			return err
		}
		t := w.tracks[w.numbers[e.ID]]
		if e.State != pawl.Dead && e.State != pawl.Completed {
			return fmt.Errorf("job %d is %s after the drain\n%s", t.N, e.State, t.story())
		}
		if err := t.wholeHistory(e); err != nil {
			return err
		}
	}
	return w.verdict()
}

// verdict judges rules that need the whole case.
func (w *world) verdict() error {
	for _, r := range w.runs {
		if err := w.judgeRun(r); err != nil {
			return fmt.Errorf("job %d, run at %s until %s, which was %q: %w\n%s",
				r.job, clock(r.from), clock(r.to), r.does, err, w.tracks[r.job].story())
		}
	}
	for _, l := range w.leases {
		if l.run == nil && !l.held && slices.Contains([]string{"ack", "nack"}, l.how) {
			return fmt.Errorf("job %d: a lease of %s ended by %s, and nothing ran\n%s", l.job, clock(l.at), l.how, l.track.story())
		}
		if l.how == "expiry" && l.by != nil && !l.by.wasImpaired(l.at, l.expires) {
			return fmt.Errorf("job %d: a lease of %s expired, and nothing had kept its worker from extending it\n%s", l.job, clock(l.at), l.track.story())
		}
	}
	slices.SortStableFunc(w.leases, func(a, b *lease) int { return cmp.Compare(a.at, b.at) })
	return errors.Join(w.effects(), w.repeatSuspects(), w.storms(), w.suspect())
}

// wholeHistory requires that a job's history has each reported failed attempt, with its
// number, its time and its cause. The only other allowed entry says that the job was
// poison.
func (t *track) wholeHistory(e *pawl.Envelope) error {
	var want []pawl.Failure
	unsure := false
	for _, l := range t.leases {
		for _, s := range l.settles {
			if s.what != "nack" && s.what != "abandon" {
				continue
			}
			unsure = unsure || s.end == never
			if s.err == nil && s.end != never {
				want = append(want, pawl.Failure{Attempt: l.attempts + 1, At: time.Unix(0, t.wall.at(s.at)), Error: ellipsis.Truncate(s.cause, pawl.MaxErrorText)})
			}
		}
	}
	if unsure {
		return nil
	}
	got := slices.DeleteFunc(slices.Clone(e.History), func(f pawl.Failure) bool { return strings.HasPrefix(f.Error, "crashed ") })
	same := slices.EqualFunc(got, want, func(a, b pawl.Failure) bool {
		return a.Attempt == b.Attempt && a.At.Equal(b.At) && a.Error == b.Error
	})
	if !same {
		return fmt.Errorf("job %d has the history %v, and these attempts failed: %v\n%s", t.N, e.History, want, t.story())
	}
	return nil
}

// effects requires that jobs with the same idempotency key never ran at the same time, or
// after a success that counts, and that a job was skipped only because of such a success.
func (w *world) effects() error {
	leases := make(map[string][]*lease)
	acks := make(map[string][]*record)
	for _, l := range w.leases {
		if l.track.Effect != "" {
			leases[l.track.effect()] = append(leases[l.track.effect()], l)
		}
	}
	for _, r := range w.acks {
		if t := w.tracks[r.job]; t.Effect != "" {
			acks[t.effect()] = append(acks[t.effect()], r)
		}
	}
	for effect, all := range leases {
		if a, b := beside(all); a != nil {
			return fmt.Errorf("jobs %d and %d have the effect %s and were leased side by side, at %s and %s\n%s\n%s",
				a.job, b.job, effect, clock(a.at), clock(b.at), a.track.story(), b.track.story())
		}
		for _, r := range acks[effect] {
			for _, l := range all {
				if r.end != never && l.at > r.at && w.wall.latest(r.at, l.at) < w.until(r) {
					return fmt.Errorf("job %d was leased at %s, and its effect %s was done by job %d at %s\n%s", l.job, clock(l.at), effect, r.job, clock(r.at), l.track.story())
				}
			}
		}
	}
	for _, s := range w.skips {
		t := w.tracks[s.job]
		if !slices.ContainsFunc(acks[t.effect()], func(r *record) bool { return r.at <= s.at && w.wall.at(s.at) < w.until(r) }) {
			return fmt.Errorf("job %d was skipped at %s, and its effect %s was not done\n%s", s.job, clock(s.at), t.effect(), t.story())
		}
	}
	return nil
}

func (t *track) effect() string { return t.Kind + "/" + t.Effect }

// until returns the wall-clock time when a success no longer counts.
func (w *world) until(r *record) int64 {
	return w.wall.at(r.at) + int64(cmp.Or(w.tracks[r.job].TTL, pawl.DefaultIdempotencyTTL))
}

// beside finds two leases that were held at the same time. The leases are in the order in
// which they were granted.
func beside(leases []*lease) (a, b *lease) {
	var longest *lease
	for _, l := range leases {
		if longest != nil && l.at < longest.until() && (l.at > longest.at || l.until() > l.at) {
			return longest, l
		}
		if longest == nil || l.until() > longest.until() {
			longest = l
		}
	}
	return nil, nil
}

func (l *lease) until() int64 { return cmp.Or(l.ended, never) }

// repeatSuspects requires that at most one job that crashed twice or more was leased at a
// time.
func (w *world) repeatSuspects() error {
	all := slices.DeleteFunc(slices.Clone(w.leases), func(l *lease) bool { return l.crashes < 2 })
	if a, b := beside(all); a != nil {
		return fmt.Errorf("jobs %d and %d, which had crashed twice or more, were leased side by side at %s and %s\n%s\n%s",
			a.job, b.job, clock(a.at), clock(b.at), a.track.story(), b.track.story())
	}
	return nil
}

// manyLeases is more leases than a job may have in one second.
const manyLeases = 40

// storms requires that no job was leased repeatedly in a short time.
func (w *world) storms() error {
	for _, t := range w.order {
		for i := manyLeases; i < len(t.leases); i++ {
			if t.leases[i].at-t.leases[i-manyLeases].at < 1e9 {
				return fmt.Errorf("job %d was leased %d times within a second\n%s", t.N, manyLeases, t.story())
			}
		}
	}
	return nil
}

// suspect requires that a job that crashes its process each time becomes poison after the
// maximum number of crashes, and that no other job does.
func (w *world) suspect() error {
	if !w.c.Suspect {
		return nil
	}
	for _, t := range w.order {
		kills := len(t.Runs) > 0 && t.Runs[0].Do == "kill"
		for _, k := range t.base.set {
			switch poison := k.reason == pawl.ReasonPoison; {
			case poison && !kills:
				return fmt.Errorf("job %d was only beside the suspect, and is poison\n%s", t.N, t.story())
			case poison && len(t.leases) != w.c.MaxCrashes:
				return fmt.Errorf("job %d is poison after %d leases\n%s", t.N, len(t.leases), t.story())
			}
		}
	}
	return nil
}
