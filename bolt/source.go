package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/driver"
)

// source is the ready jobs of one queue: the lanes of the requested kinds, merged in their
// order.
type source struct {
	queue  queueNumber
	asked  asked
	turn   *turn
	weight int
	room   int           // how many more jobs it may give; negative for any number
	starts int           // how many more starts its rate allows; negative for any number
	pool   *poolCount    // nil if it has none
	share  int           // the source starts a job only while fewer jobs of its pool run
	pace   driver.Pace   // the rate that limits starts
	lanes  []*laneCursor // lanes with jobs; nil until the first turn of the source

	// Results of peek: the first job of each sort, nil if there is none.
	first, again *laneCursor
}

type laneCursor struct {
	lane   lane
	cursor *bbolt.Cursor
	prefix [lanePrefix]byte
	key    []byte // key of the next row; nil at the end
	row    indexRow
	job    *fetched // the job of that row, once it has been read
}

func (s *selection) source(a asked, weight int) *source {
	return &source{queue: a.queue, asked: a, turn: s.turns.of(a.queue), weight: weight}
}

// measure sets how much room the limits of a queue leave to its source, after the jobs that were
// already chosen. It reports whether there is any room.
func (s *selection) measure(from *source, row *queueRow) bool {
	if row.rests.After(s.t.now) {
		s.t.resting = append(s.t.resting, restingQueue{number: from.queue, row: row})
		return false
	}
	limits := row.limits
	s.t.fairRow(from.queue) // if that row is damaged, this recounts all jobs, which must not happen while jobs are being leased
	from.room, from.starts = -1, -1
	own := s.t.ownRow(from.queue)
	if limits.Pool.Running > 0 {
		from.pool, from.share = s.poolOf(limits.Pool.Name), limits.Pool.Running
	}
	if limits.Running == 0 && own == nil {
		return !from.poolFull()
	}
	var beside takes
	for _, job := range s.jobs {
		if job.line().queue == from.queue {
			beside.jobs++
			if own != nil {
				beside.starts += own.pace.Units(job.cost())
			}
		}
	}
	if limits.Running > 0 {
		from.room = max(0, limits.Running-s.t.running(from.queue)-beside.jobs)
	}
	if own != nil {
		from.pace, from.starts = own.pace, max(0, s.t.room(own)-beside.starts)
		if from.starts == 0 {
			s.t.resting = append(s.t.resting, restingQueue{from.queue, row, own})
		}
	}
	return from.room != 0 && from.starts != 0 && !from.poolFull()
}

// give counts a job that the source gave. It reports whether there is room for more.
func (from *source) give(job *fetched) bool {
	if from.room > 0 {
		from.room--
	}
	if from.starts > 0 {
		from.starts = max(0, from.starts-from.pace.Units(job.cost()))
	}
	if from.pool != nil {
		from.pool.leased++
	}
	return from.room != 0 && from.starts != 0
}

// openLanes finds the lanes of a source that have jobs. It skips a line whose row is damaged,
// because the jobs of that line cannot be counted as leased.
func (s *selection) openLanes(from *source) {
	from.lanes = make([]*laneCursor, 0, lanes)
	seek := binary.BigEndian.AppendUint32(nil, uint32(from.queue))
	for {
		cursor := s.t.ready.Cursor()
		key, value, found := s.seek(cursor, seek)
		if !found {
			return
		}
		if _, err := s.t.rowOfLine(lineAt(key)); err != nil {
			s.t.damagedRow(err)
			if seek = behind(key[:lineWidth]); seek == nil {
				return
			}
			continue
		}
		lc := &laneCursor{lane: lane(key[lanePrefix-1]), cursor: cursor, prefix: [lanePrefix]byte(key)}
		if lc.set(s, key, value); lc.key != nil {
			from.lanes = append(from.lanes, lc)
		}
		if seek = behind(lc.prefix[:]); seek == nil {
			return
		}
	}
}

// behind returns the first possible key after all keys of a line or lane, including damaged
// keys of any length. It returns nil if nothing of the queue can follow.
func behind(prefix []byte) []byte {
	to := prefixed(prefix).to
	if to == nil {
		return nil
	}
	to = append(to, make([]byte, len(prefix)-len(to))...) // at least as long as a line
	if queueOf(to) != queueOf(prefix) {
		return nil
	}
	return to
}

func (lc *laneCursor) next(s *selection) {
	key, value := lc.cursor.Next()
	lc.set(s, key, value)
}

// set moves to the cursor's row, or to the first later row that is sound and was not skipped.
func (lc *laneCursor) set(s *selection, key, value []byte) {
	for ; bytes.HasPrefix(key, lc.prefix[:]); key, value = lc.cursor.Next() {
		if s.behind[string(key)] {
			continue
		}
		row, err := parseIndexRow(key, value)
		if err == nil {
			lc.key, lc.row, lc.job = key, row, nil
			return
		}
		s.t.damagedRow(fmt.Errorf("row %x of bucket %s: %w", key, bucketReady, err))
	}
	lc.key = nil
}

// peek finds the first job of each sort, first attempts and retries, in the allowed lanes.
func (s *source) peek(allow allowance) {
	s.first, s.again = nil, nil
	for _, lc := range s.lanes {
		if lc.key == nil || !allow.covers(lc.lane.class()) {
			continue
		}
		best := &s.first
		if lc.lane.retries() {
			best = &s.again
		}
		if *best == nil || lc.before(*best) {
			*best = lc
		}
	}
}

// holdsBack reports whether a source has a repeat suspect that could be leased if no other
// repeat suspect were leased.
func (s *source) holdsBack(allow allowance) bool {
	return allow.idle > 0 && !allow.repeat && slices.ContainsFunc(s.lanes, func(lc *laneCursor) bool {
		return lc.key != nil && lc.lane.class() >= repeat
	})
}

// before reports whether the next job of lc precedes that of other in the order of their queue.
func (lc *laneCursor) before(other *laneCursor) bool {
	return bytes.Compare(lc.key[lanePrefix:], other.key[lanePrefix:]) < 0
}

// lane returns the lane in which peek found the next retry, or the next first attempt.
func (s *source) lane(retry bool) *laneCursor {
	if retry {
		return s.again
	}
	return s.first
}
