package sqlite

import (
	"cmp"
	"database/sql/driver"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	pawldriver "github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// fetchBytes is how many bytes of payloads one fetch copies, not counting the last job.
const fetchBytes = 8 << 20

// selection chooses and leases the jobs of a fetch, one after the other.
type selection struct {
	t      *txn
	f      *fetch
	idle   int // free slots, in which jobs that crashed before may start
	bytes  int // bytes of the payloads of the leases
	lanes  map[string][]*lane
	leases []*pawl.Lease
}

// lane is the ready jobs of a queue and a kind with the same history of crashes and attempts. It reads
// them in portions.
type lane struct {
	line, lane int64
	list       []*candidate
	last       *candidate // the last candidate that was read
	end        bool
}

// candidate is a job that may be leased.
type candidate struct {
	seq, prio, since int64
	effect           string
	done             bool // its effect is done, so it ends without an attempt
	bytes            int  // bytes of its payload
}

func (c *candidate) compare(other *candidate) int {
	return cmp.Or(cmp.Compare(c.prio, other.prio), cmp.Compare(c.since, other.since), cmp.Compare(c.seq, other.seq))
}

// sqlPeek reads the next ready jobs of a lane.
const sqlPeek = `SELECT seq, prio, since, effect, length(payload),
	effect IS NOT NULL AND EXISTS (SELECT 1 FROM pawl_effect e WHERE e.name = j.effect AND e.done_until > ?)
FROM pawl_job j WHERE place = 2 AND line = ? AND lane = ? AND (prio, since, seq) > (?, ?, ?) AND (deadline IS NULL OR deadline > ?)
ORDER BY prio, since, seq LIMIT ?`

// run chooses and leases jobs.
func (s *selection) run() {
	for seen := -1; seen != s.t.released; { // again for jobs that were released when another job was skipped
		seen = s.t.released
		s.look()
		for len(s.leases) < s.f.Max && s.bytes < fetchBytes && s.t.err == nil && s.next() {
		}
	}
}

// look begins to read the lanes.
func (s *selection) look() {
	s.lanes = make(map[string][]*lane)
	for _, name := range s.f.Queues {
		l := s.t.all().queues[name]
		if l == nil || l.paused || s.lanes[name] != nil {
			continue
		}
		for kind, id := range l.kinds {
			if pawldriver.Wants(&s.f.Request, kind) {
				for n := range int64(6) {
					s.lanes[name] = append(s.lanes[name], &lane{line: id, lane: n})
				}
			}
		}
	}
}

// next leases the job whose turn it is. It reports whether there is one.
func (s *selection) next() bool {
	turns := &s.t.q.turns
	names := s.f.Queues // a queue that is named twice has one turn
	if len(names) > 1 {
		names = slices.Clone(names)
		slices.SortStableFunc(names, func(a, b string) int {
			switch {
			case turns.Before(a, b):
				return -1
			case turns.Before(b, a):
				return 1
			}
			return 0
		})
	}
	for _, name := range names {
		l, credit := s.pick(name)
		if l == nil {
			continue
		}
		c := l.list[0]
		l.list = l.list[1:]
		turns.Take(name, pawldriver.Weight(&s.f.Request, name), credit)
		if l.lane >= 2 {
			s.idle--
		}
		s.bytes += c.bytes
		s.claim(c)
		return true
	}
	return false
}

// pick returns the lane with the job that a queue gives in its turn, nil if it has none, and the credit
// of its retries after that. The retry share applies only while the queue also has first attempts.
func (s *selection) pick(queue string) (*lane, float64) {
	turns := &s.t.q.turns
	credit := turns.Credit(queue)
	if s.f.RetryShare == 0 {
		return s.first(queue, func(*lane) bool { return true }), credit
	}
	again := s.first(queue, func(l *lane) bool { return l.lane&1 == 1 })
	fresh := s.first(queue, func(l *lane) bool { return l.lane&1 == 0 })
	if again == nil || fresh == nil {
		return cmp.Or(again, fresh), credit
	}
	retry, credit := turns.Retry(queue, s.f.RetryShare)
	if retry {
		return again, credit
	}
	return fresh, credit
}

// first returns the lane of a sort with the first job of a queue. If the effect of a job that it meets
// is done, the job ends without an attempt. first skips a job whose effect another chosen job has.
func (s *selection) first(queue string, sort func(*lane) bool) *lane {
	for {
		var first *lane
		for _, l := range s.lanes[queue] {
			if !sort(l) || !s.may(l) {
				continue
			}
			if c := s.head(l); c != nil && (first == nil || c.compare(first.list[0]) < 0) {
				first = l
			}
		}
		if first == nil || !first.list[0].done {
			return first
		}
		if j := s.t.read(sqlJobBySeq, first.list[0].seq); j != nil && j.State == pawl.Ready {
			s.t.Skip(j)
		}
		first.list = first.list[1:]
	}
}

// may reports whether a job of a lane may start. A job that crashed before needs a free slot. A job that
// crashed at least twice may start only if no other such job is leased.
func (s *selection) may(l *lane) bool {
	return l.lane < 2 || s.idle > 0 && (l.lane < 4 || !s.t.hasRepeat())
}

// head returns the first job of a lane that may be leased or skipped, nil if there is none.
func (s *selection) head(l *lane) *candidate {
	for s.t.err == nil {
		for len(l.list) > 0 {
			if c := l.list[0]; c.effect == "" || c.done || !s.t.isRunning(c.effect) {
				return c
			}
			l.list = l.list[1:]
		}
		if l.end {
			return nil
		}
		s.peek(l)
	}
	return nil
}

// peek reads the next portion of a lane.
func (s *selection) peek(l *lane) {
	n := min(s.f.Max-len(s.leases), portion)
	after := candidate{seq: math.MinInt64, prio: math.MinInt64, since: math.MinInt64}
	if l.last != nil {
		after, n = *l.last, portion
	}
	now := nanos(s.t.Now)
	s.t.query(sqlPeek, func(v []driver.Value) error {
		l.list = append(l.list, &candidate{
			seq: number(v[0]), prio: number(v[1]), since: number(v[2]), effect: string(bytesOf(v[3])),
			bytes: int(number(v[4])), done: number(v[5]) != 0,
		})
		return nil
	}, now, l.line, l.lane, after.prio, after.since, after.seq, now, int64(n))
	if l.end = len(l.list) < n; len(l.list) > 0 {
		l.last = l.list[len(l.list)-1]
	}
}

// hasRepeat reports whether a job is leased that crashed twice or more.
func (t *txn) hasRepeat() bool {
	for id := range t.q.repeats {
		if !t.settled[id] && !t.sound[id] {
			return true
		}
	}
	return t.repeat
}

// isRunning reports whether a job is leased that has an effect.
func (t *txn) isRunning(effect string) bool {
	id, running := t.q.running[effect]
	return running && !t.settled[id] || t.started[effect]
}

// sqlClaim leases a job.
const sqlClaim = `UPDATE pawl_job SET place = 4, token = ?, leased_since = ? WHERE seq = ? RETURNING ` + columns + `, payload`

// claim leases a job.
func (s *selection) claim(c *candidate) {
	t := s.t
	token := newToken()
	var j *job
	var damaged error
	t.query(sqlClaim, func(v []driver.Value) error {
		j, damaged = jobOf(v)
		j.Payload = bytesOf(v[10])
		return nil
	}, token, nanos(t.Now), c.seq)
	switch {
	case t.err != nil || j == nil:
		return
	case damaged != nil:
		t.makeCorrupt(j, damaged)
		return
	}
	s.leases = append(s.leases, t.grant(j))
}

// grant makes the lease of a claimed job. A lease does not include the state and the history of the job.
// The holder shares no memory with the queue.
func (t *txn) grant(j *job) *pawl.Lease {
	e := j.Envelope
	e.State, e.LeasedSince = "", time.Time{}
	j.Payload = nil
	j.Headers, j.UniqueIn, j.Signature = maps.Clone(e.Headers), slices.Clone(e.UniqueIn), slices.Clone(e.Signature)
	if e.Policy != nil {
		policy := *e.Policy
		j.Policy = &policy
	}
	h := &held{job: j, token: j.token, signal: new(pawldriver.Cancellation), expires: t.expiry()}
	effect, repeat := core.EffectName(&j.Envelope), j.isRepeat()
	if effect != "" {
		t.started[effect] = true
	}
	t.repeat = t.repeat || repeat
	t.after = append(t.after, func() {
		t.q.held[j.ID] = h
		if effect != "" {
			t.q.running[effect] = j.ID
		}
		if repeat {
			t.q.repeats[j.ID] = true
		}
	})
	fetched := pawl.Event{Type: pawl.EventFetched}
	if !j.BackoffSince.IsZero() {
		fetched.Backoff = t.Now.Sub(j.BackoffSince)
	}
	t.Emit(j, fetched)
	return &pawl.Lease{Envelope: &e, Token: uint64(h.token), Length: t.q.opts.Lease, Expires: h.expires, Cancelled: h.signal}
}
