package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Queue is a job queue in memory. It implements [pawl.Queue]. Any goroutine may call its methods.
type Queue struct {
	opts Options
	err  error // the error of the options; every call returns it

	waiters driver.Waiters

	ringing sync.WaitGroup // 1 while the alarm is set or rings
	done    chan struct{}  // closed by Close

	mu     mutex // guards what follows
	closed bool
	seq    uint64 // the last enqueue sequence that a job got
	tokens uint64 // the last token that a lease got
	jobs   map[pawl.ID]*job
	lines  []*line // in the order of their first job

	delayed   list
	leased    list
	completed list
	mortal    list // the ready and delayed jobs that have a deadline

	holders map[unique]*job      // of each unique key
	running map[string]bool      // the idempotency keys of leased jobs
	effects map[string]time.Time // until when a success of that key counts
	sweepAt int                  // how many of those make the queue remove the old ones

	moves     core.Moves[*job] // Now is the wall clock at the beginning of the transition under way
	reporter  driver.Reporter
	cancelled []*driver.Cancellation // of leased jobs that the transition under way has cancelled

	dependents map[pawl.ID][]*job // the jobs that wait for a job
	ended      []ended            // jobs that others wait for, in the transition under way

	tables   map[tableName][]row // of other packages
	nextTurn bool                // a fetch skipped a job of a key in order, so another fetch may get the next one
	groups   driver.Groups       // whose members moved in the transition under way
	counted  []*line             // in which jobs changed in the transition under way
	events   []pawl.Event        // of the transition under way
	meter    driver.Meter

	turns   uint64 // the last turn that a queue had
	virtual uint64 // the start of that turn, in virtual time

	waiting []*fetch    // in the order of their calls
	alarm   *time.Timer // nil if nothing will fall due
	still   bool        // the alarm rings, and the wall clock stood still since it was set
}

var _ pawl.Queue = (*Queue)(nil)

// line is one of the named queues in a Queue.
type line struct {
	name    string
	paused  bool
	limits  pawl.Limits          // in force
	set     bool                 // by an operator
	rests   map[string]time.Time // until when keys rest, and the queue by the empty key
	leased  map[string]int       // leases of each key
	waiting map[string]int       // ready and delayed jobs of each key
	order   inOrder
	fair    fair
	pace    pacer // of the queue
	keyPace pacer // of each key
	ready   list
	dead    list
	counts  pawl.Counts // of its jobs, whichever list they are in
	kinds   map[string]*pawl.Counts
	totals  driver.Totals // of the transition under way
	fetched bool          // in the transition under way
	turn    uint64        // the number of its last turn; 0 before the first
	finish  uint64        // of that turn, in virtual time
	credit  float64       // the fraction of a retry that its share has left over
}

// New makes an empty queue. If an option is bad, every call returns a [*pawl.InvalidError].
func New(opts *Options) *Queue {
	q := &Queue{
		jobs:       make(map[pawl.ID]*job),
		delayed:    list{compare: byDue},
		leased:     list{compare: byExpiry},
		completed:  list{compare: byRetention},
		mortal:     list{compare: byDeadline},
		holders:    make(map[unique]*job),
		running:    make(map[string]bool),
		dependents: make(map[pawl.ID][]*job),
		effects:    make(map[string]time.Time),
		tables:     make(map[tableName][]row),
		done:       make(chan struct{}),
		mu:         make(mutex, 1),
	}
	if q.opts, q.err = opts.withDefaults(); q.err != nil {
		q.err = fmt.Errorf("queue in memory: %w", q.err)
	}
	q.moves = core.NewMoves(txn{q}, q.opts.MaxCrashes)
	q.reporter.Logger, q.reporter.MaxCrashes = q.opts.Logger, q.opts.MaxCrashes
	q.reporter.OnEvent, q.reporter.Collector = q.opts.OnEvent, q.opts.Collector
	for _, name := range slices.Sorted(maps.Keys(q.opts.Limits)) {
		q.line(name)
	}
	return q
}

// Abilities implements [driver.Able].
func (q *Queue) Abilities() pawl.Ability {
	return driver.Settings | pawl.Results | pawl.Groups | pawl.Cursors | pawl.RunNotes | pawl.OrderedKeys | pawl.Prerequisites | pawl.FairKeys | pawl.BoundedQueues | pawl.SharedPools
}

// Close stops the queue: fetches that wait get [pawl.ErrClosed], and so does every later
// call. When it returns, nothing of the queue runs, and its jobs can no longer be read.
func (q *Queue) Close() error {
	q.mu.Lock()
	if !q.closed {
		close(q.done)
	}
	q.closed = true
	q.unsetAlarm()
	for _, f := range q.waiting {
		f.answer(pawl.ErrClosed)
	}
	q.waiting = nil
	q.mu.Unlock()
	q.ringing.Wait()
	return nil
}

// mutex is a lock for which a call stops waiting when its context ends. A mutation of another package may
// hold it for as long as it runs.
type mutex chan struct{}

func (m mutex) Lock()   { m <- struct{}{} }
func (m mutex) Unlock() { <-m }

// lock is Lock, unless ctx ends first.
func (m mutex) lock(ctx context.Context) (locked bool) {
	if ctx.Err() != nil {
		return false
	}
	select {
	case m <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// do makes one transition: the caller's own change, unless ctx has ended, and then everything that is due.
// A change that returns an error has changed nothing.
//
// The change comes first, so that a holder whose lease has expired, but was not taken back yet, may still
// settle. So the job runs only once.
func (q *Queue) do(ctx context.Context, change func() error) error {
	if q.err != nil {
		return q.err
	}
	if !q.mu.lock(ctx) {
		return driver.NotAccepted(ctx)
	}
	defer q.mu.Unlock()
	if q.closed {
		return pawl.ErrClosed
	}
	q.begin()
	err := change()
	q.catchUp()
	q.storeCounts()
	return err
}

// begin reads the wall clock, once for the whole transition. It drops the monotonic part, so that times
// follow a clock that is set.
func (q *Queue) begin() { q.moves.Now = q.opts.Now().Round(0) }

// catchUp makes the moves that are due, and sets the alarm for the next.
// Deadlines come after everything that may make a job ready or delayed, including
// the caller's change: such a job that is past its deadline dies at once.
func (q *Queue) catchUp() {
	q.promote()
	q.reap()
	q.expire()
	q.purge()
	q.finish()
	for q.serve(); q.unfinished() || q.nextTurn; q.serve() { // a fetch skips jobs whose effect is done
		q.nextTurn = false
		q.finish()
	}
	q.setAlarm()
	q.report()
}

// report counts and reports what the transition has done so far, before a call returns.
func (q *Queue) report() {
	var all driver.Totals
	for _, l := range q.counted {
		all.Add(l.totals)
		q.meter.Count(q.moves.Now, l.name, l.totals, l.fetched)
		l.totals, l.fetched = driver.Totals{}, false
	}
	q.reporter.Count(all)
	q.reporter.Emit(q.events...)
	for _, e := range q.events {
		q.waiters.Report(e)
	}
	clear(q.events)
	q.counted, q.events = q.counted[:0], q.events[:0]
}

// finish does what follows from the ends of jobs: it counts them in their groups, and unblocks the jobs
// that waited for them.
func (q *Queue) finish() {
	for q.unfinished() {
		q.finishGroups()
		q.release()
	}
}

func (q *Queue) unfinished() bool { return q.groups.Any() || len(q.ended) > 0 }

// line returns the queue with a name, and makes it if there is none.
func (q *Queue) line(name string) *line {
	if l := q.find(name); l != nil {
		return l
	}
	limits := q.opts.Limits[name]
	l := &line{
		name: name, limits: limits, rests: make(map[string]time.Time), leased: make(map[string]int), waiting: make(map[string]int), order: newInOrder(), fair: newFair(), pace: newPacer(limits.Rate), keyPace: newPacer(limits.RatePerKey),
		kinds: make(map[string]*pawl.Counts), ready: list{compare: byRank}, dead: list{compare: byDeath},
	}
	q.lines = append(q.lines, l)
	return l
}

// find returns the queue with a name, nil if there is none.
func (q *Queue) find(name string) *line {
	if i := slices.IndexFunc(q.lines, func(l *line) bool { return l.name == name }); i >= 0 {
		return q.lines[i]
	}
	return nil
}
