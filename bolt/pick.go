package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// choice is a ready row that a fetch chose.
type choice struct {
	key  []byte
	row  indexRow
	lane lane
}

func (c choice) line() line { return lineAt(c.key) }

// allowance is how many more crashed jobs a fetch may have: one per idle slot, and at most one
// repeat suspect.
type allowance struct {
	idle   int
	repeat bool
}

func (a allowance) covers(c class) bool {
	return c == clean || a.idle > 0 && (c == suspect || a.repeat)
}

func (a *allowance) use(c class) {
	if c != clean {
		a.idle--
	}
	if c == repeat {
		a.repeat = false
	}
}

// selection chooses jobs for one fetch. It walks over the ready jobs of the requested queues,
// which take turns, and copies out the jobs that may be leased.
type selection struct {
	t       *txn
	request *pawl.Request
	asked   []asked      // the queues to look at, by number
	kinds   []kindNumber // the requested kinds, in ascending order
	all     bool         // every kind is requested
	turns   *turns
	spare   *spare
	allow   allowance
	room    *int // how many more jobs of this commit may turn out not to be leasable

	sources []*source
	pools   map[string]*poolCount // of the sources; nil if none has a pool
	held    []asked               // queues with a repeat suspect that must wait for another one
	passed  [][]byte              // keys of ready rows that were chosen or skipped
	behind  map[string]bool       // the same as a set, once the walk has restarted
	effects map[string]bool       // effects of the chosen jobs; nil if none
	jobs    []*fetched
	bytes   int // size of their records and payloads
}

// maxFetchBytes limits how many bytes of jobs one fetch copies. The last job may exceed it.
// Many large payloads in one fetch would evict one another from the processor's caches and
// could exhaust memory.
const maxFetchBytes = 8 << 20

// usualJobs is the least initial capacity for jobs.
const usualJobs = 64

// run chooses up to request.Max jobs, in order. It chooses fewer if their payloads are large.
func (s *selection) run() error {
	if err := s.open(); err != nil {
		return err
	}
	if len(s.sources) > 0 {
		s.jobs, s.passed = make([]*fetched, 0, min(s.request.Max, max(usualJobs, s.spare.jobs))), s.spare.passed
		defer s.close()
	}
	for len(s.sources) > 0 && len(s.jobs) < s.request.Max && s.bytes < maxFetchBytes && *s.room > 0 {
		i := s.turns.next(s.sources)
		from := s.sources[i]
		if moved := s.find(from); moved {
			*s.room--
			if err := s.reopen(); err != nil {
				return err
			}
			continue
		}
		if *s.room == 0 {
			break
		}
		if from.first == nil && from.again == nil {
			if from.holdsBack(s.allow) {
				s.held = append(s.held, from.asked)
			}
			s.sources = slices.Delete(s.sources, i, i+1)
			continue
		}
		retry, credit := s.turns.retry(from, s.request.RetryShare)
		s.turns.took(from, credit)
		s.take(from.lane(retry))
		if !from.give(s.jobs[len(s.jobs)-1]) {
			s.sources = slices.Delete(s.sources, i, i+1)
		}
		if from.pool != nil {
			s.sources = slices.DeleteFunc(s.sources, (*source).poolFull)
		}
	}
	return nil
}

// close ends the choice, so that its jobs no longer count against the room of their keys.
func (s *selection) close() {
	s.spare.jobs, s.spare.passed = len(s.jobs), emptied(s.passed)
	for _, job := range s.jobs {
		if job.limit != nil {
			job.limit.taken = takes{}
		}
	}
}

// find looks for the first leasable job of each sort: first attempts and retries. If it meets a
// job that cannot be leased, it moves the job to its proper state and stops.
func (s *selection) find(from *source) (moved bool) {
	if from.lanes == nil {
		s.openLanes(from)
	}
	for again := true; again; {
		again = false
		from.peek(s.allow)
		for _, lc := range [...]*laneCursor{from.first, from.again} {
			if lc == nil {
				continue
			}
			if lc.job == nil {
				if lc.job, moved = s.admit(choice{lc.key, lc.row, lc.lane}); moved {
					return true
				}
			}
			if s.taken(lc.job) {
				if s.makesWay(lc.job) {
					return true
				}
				s.pass(lc)
				*s.room--
				again = *s.room > 0
			}
		}
	}
	return false
}

// taken reports whether the jobs chosen so far have the effect of a job, or use all the room of
// its key.
func (s *selection) taken(job *fetched) bool {
	return job.effect != nil && s.effects[string(job.effect)] || job.limit != nil && !s.t.fits(job.limit)
}

// makesWay blocks a job whose effect another chosen job has, if other jobs of its limit key are
// blocked: one of them may run in its place.
func (s *selection) makesWay(job *fetched) bool {
	if job.limit == nil || !s.effects[string(job.effect)] || !job.limit.lane(job.key).blocked {
		return false
	}
	j, err := s.t.record(job.row.id)
	if err != nil {
		return false // admit finds the damage
	}
	s.t.block(job.choice, job.effect)
	s.t.leaveReady(s.t.left(job.line().queue, j.Key), job.key)
	return true
}

// take chooses the next job of a lane.
func (s *selection) take(lc *laneCursor) {
	s.jobs = append(s.jobs, lc.job)
	s.bytes += len(lc.job.record) + len(lc.job.payload)
	s.allow.use(lc.lane.class())
	if lc.job.effect != nil {
		if s.effects == nil {
			s.effects = make(map[string]bool)
		}
		s.effects[string(lc.job.effect)] = true
	}
	if r := lc.job.limit; r != nil {
		r.taken.jobs++
		r.taken.starts += r.pace.Units(lc.job.cost())
	}
	s.pass(lc)
}

// pass skips the next job of a lane permanently.
func (s *selection) pass(lc *laneCursor) {
	s.passed = append(s.passed, lc.key)
	lc.next(s)
}

// reopen restarts the walk, since cursors do not notice moved rows.
func (s *selection) reopen() error {
	if s.behind == nil {
		s.behind = make(map[string]bool)
	}
	for _, key := range s.passed {
		s.behind[string(key)] = true
	}
	s.passed = s.passed[:0]
	return s.open()
}

// open begins the walk. It skips all queues without ready jobs of the requested kinds, and
// everything else that is not requested. A queue that is paused, or at a limit of its own, has no
// turns.
func (s *selection) open() error {
	s.sources, s.held, s.pools = s.sources[:0], nil, nil
	cursor := s.t.ready.Cursor()
	for rest := s.asked; len(rest) > 0; {
		next := rest[0].queue
		key, _, found := s.seek(cursor, binary.BigEndian.AppendUint32(nil, uint32(next)))
		if key == nil {
			break
		}
		if n := queueOf(key); n > next {
			rest = rest[sort.Search(len(rest), func(i int) bool { return rest[i].queue >= n }):]
			continue
		}
		if found {
			row, err := s.t.rowOf(next)
			if err != nil {
				return err
			}
			from := s.source(rest[0], driver.Weight(s.request, row.name))
			if !row.paused && s.measure(from, row) {
				s.sources = append(s.sources, from)
			}
		}
		rest = rest[1:]
	}
	slices.SortFunc(s.sources, func(a, b *source) int { return cmp.Compare(a.asked.place, b.asked.place) })
	return nil
}

// seek finds the first ready row at or after key that is in the same queue and has a requested
// kind. If found is false, key is where the search ended, or nil at the end of all rows. seek
// skips damaged keys that are too short for a lane.
func (s *selection) seek(c *bbolt.Cursor, from []byte) (key, value []byte, found bool) {
	queue := queueOf(from)
	for {
		key, value = s.t.ready.find(c, from)
		for key != nil && len(key) < lanePrefix {
			key, value = c.Next()
		}
		if key == nil || queueOf(key) != queue || bytes.Compare(key, from) < 0 {
			return key, nil, false
		}
		if s.all {
			return key, value, true
		}
		i, asked := slices.BinarySearch(s.kinds, lineAt(key).kind)
		if asked {
			return key, value, true
		}
		if i == len(s.kinds) {
			return key, nil, false
		}
		from = appendLine(nil, line{queue, s.kinds[i]})
	}
}

// left reports whether a queue has ready or leased jobs of the requested kinds, or delayed ones
// where those count.
func (s *selection) left(n queueNumber, delayed bool) (bool, error) {
	waits := func(c *pawl.Counts) bool { return c.Ready > 0 || c.Leased > 0 || delayed && c.Delayed > 0 }
	if !s.all {
		for _, kind := range s.kinds {
			ln := line{n, kind}
			row, ok := s.t.lines[ln]
			if !ok {
				var err error
				if row, ok, err = s.t.lineRow(ln); err != nil {
					return false, err
				}
			}
			if ok && waits(&row.counts) {
				return true, nil
			}
		}
		return false, nil
	}
	for ln, row := range s.t.lines {
		if ln.queue == n && waits(&row.counts) {
			return true, nil
		}
	}
	err := s.t.eachLine(n, func(ln line, row *lineRow) error {
		if _, changed := s.t.lines[ln]; !changed && waits(&row.counts) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// errFound stops a search.
var errFound = errors.New("found")
