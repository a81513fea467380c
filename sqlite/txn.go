package sqlite

import (
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
	pawldriver "github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// txn is one transaction. Its calls read and write the tables one after the other. Its changes to the
// scheduler wait for the commit.
type txn struct {
	core.Moves[*job] // Now is the wall clock

	q      *Queue
	c      conn
	err    error     // the first error of SQLite, which ends the transaction
	mono   time.Time // monotonic time
	upkeep bool      // it has reached due work and waiting fetches
	app    bool      // it is a transaction of the app

	calls   []*call // that it has accepted
	answers []error // of the calls
	fetches []*fetch
	looking []*fetch // that it has accepted

	seq, seqWas int64  // the last sequence that next has returned; 0 before it is read
	lines       *lines // nil before they are read
	ownLines    bool   // lines is a copy

	settled   map[pawl.ID]bool    // leases that ended
	extended  map[pawl.ID]bool    // leases that were extended
	cancelled map[pawl.ID]bool    // leases whose jobs were cancelled
	sound     map[pawl.ID]bool    // leases whose jobs no longer have crashes
	saved     map[pawl.ID][]byte  // cursors of leases that were stored
	acked     map[ackedLease]bool // leases that the app has acked
	started   map[string]bool     // effects of jobs that it has leased
	repeat    bool                // it has leased a job that crashed twice or more
	reaped    int
	awaits    *bool // whether some job waits for another; nil if unknown
	released  int   // jobs that no longer wait

	rows *rows // rows of other packages; nil without a mutation

	events  []pawl.Event
	totals  pawldriver.Totals // its transitions; events has some of them
	results []func()          // functions that return results to callers, if the transaction may have been committed
	after   []func()          // run after the commit
}

func newTxn(q *Queue, c conn) *txn {
	t := &txn{
		q: q, c: c, mono: time.Now(),
		settled: make(map[pawl.ID]bool), extended: make(map[pawl.ID]bool), cancelled: make(map[pawl.ID]bool),
		sound: make(map[pawl.ID]bool), saved: make(map[pawl.ID][]byte), acked: make(map[ackedLease]bool), started: make(map[string]bool),
	}
	t.Moves = core.NewMoves(t, q.opts.MaxCrashes)
	t.Now = q.wall()
	return t
}

// run accepts calls and carries them out, then does due work, and serves the waiting fetches.
func (t *txn) run(calls []*call) error {
	if err := t.notice(); err != nil {
		return err
	}
	for _, c := range calls {
		if !c.Accept() {
			continue
		}
		t.calls = append(t.calls, c)
		err := c.apply(t)
		if t.err != nil {
			return t.err
		}
		t.answers = append(t.answers, err)
	}
	if !t.mono.Before(t.q.resume) || hasFetch(t.calls) {
		t.upkeep = true
		t.maintain()
		t.serve()
	}
	t.storeSequence()
	return t.err
}

// notice finds out whether another connection has committed since the last transaction.
func (t *txn) notice() error {
	version, err := t.q.dataVersion()
	if err != nil {
		return err
	}
	t.q.now = t.Now
	if version == t.q.version {
		t.lines = t.q.lines
		return nil
	}
	t.q.due, t.q.stirred, t.q.noneAwaits = time.Time{}, true, false
	t.noticeAcks()
	t.after = append(t.after, func() { t.q.version = version })
	return t.err
}

// exec runs a statement unless an earlier one failed. It returns how many rows it changed.
func (t *txn) exec(statement string, args ...driver.Value) int64 {
	if t.err != nil {
		return 0
	}
	var n int64
	n, t.err = t.c.exec(statement, args...)
	return n
}

// query reads rows unless an earlier statement failed. Row must not run statements.
func (t *txn) query(statement string, row func(v []driver.Value) error, args ...driver.Value) {
	if t.err == nil {
		t.err = t.c.query(statement, row, args...)
	}
}

// one returns a function that reads the result of a query for one number.
func one(n *int64) func(v []driver.Value) error {
	return func(v []driver.Value) error {
		*n = number(v[0])
		return nil
	}
}

// next returns a new sequence.
func (t *txn) next() int64 {
	if t.seq == 0 {
		t.query(`SELECT seq FROM pawl_meta`, one(&t.seq))
		t.seqWas = t.seq
	}
	t.seq++
	return t.seq
}

// storeSequence stores the last sequence that next has returned.
func (t *txn) storeSequence() {
	if t.seq != t.seqWas {
		t.exec(`UPDATE pawl_meta SET seq = ?`, t.seq)
		t.seqWas = t.seq
	}
}

// newToken returns a token, which has the size of [noToken] in a row.
func newToken() int64 { return noToken + 1 + rand.Int64N(noToken-1) }

// noToken is the token of a job that is not leased.
const noToken = 1 << 61

// Get returns a job, nil if there is none with the ID.
func (t *txn) Get(id pawl.ID) *job { return t.read(sqlJobByID, id[:]) }

const (
	columns     = `seq, id, line, place, since, token, leased_since, cancelled, record, length(payload)`
	sqlJobByID  = `SELECT ` + columns + ` FROM pawl_job WHERE id = ?`
	sqlJobBySeq = `SELECT ` + columns + ` FROM pawl_job WHERE seq = ?`
)

// read reads the job that a statement names.
func (t *txn) read(statement string, args ...driver.Value) *job {
	if jobs := t.readAll(statement, args...); len(jobs) > 0 {
		return jobs[0]
	}
	return nil
}

// readAll reads jobs. It makes jobs with damaged records dead.
func (t *txn) readAll(statement string, args ...driver.Value) (jobs []*job) {
	damaged := make(map[*job]error)
	t.query(statement, func(v []driver.Value) error {
		j, err := jobOf(v)
		if err != nil {
			damaged[j] = err
		}
		jobs = append(jobs, j)
		return nil
	}, args...)
	for j, err := range damaged {
		t.makeCorrupt(j, err)
	}
	return jobs
}

// insert stores a new job.
func (t *txn) insert(j *job) {
	place, since := j.since()
	t.exec(`INSERT INTO pawl_job (seq, id, line, place, lane, prio, since, deadline, token, leased_since, cancelled, effect, record, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)`,
		int64(j.Seq), j.ID[:], j.line, place, j.lane(), 127-int64(j.Priority), since, j.deadline(), int64(noToken), since,
		j.effectColumn(), recordOf(j), payloadColumn(j.Payload))
	j.stored = true
	for i, f := range j.History { // the history of a restored job has its first and last entries
		n := i + 1
		if i >= pawl.HistoryKeepHead {
			n = j.Failures - len(j.History) + i + 1
		}
		t.addHistory(j, n, f)
	}
}

// save stores the new place of a job, which has no lease.
func (t *txn) save(j *job) {
	place, since := j.since()
	t.exec(`UPDATE pawl_job SET place = ?, lane = ?, since = ?, token = ?, cancelled = 0, record = ? WHERE seq = ?`,
		place, j.lane(), since, int64(noToken), recordOf(j), int64(j.Seq))
}

// addHistory stores the failure with a number. A job keeps its first and its last failures.
func (t *txn) addHistory(j *job, n int, f pawl.Failure) {
	t.exec(`INSERT INTO pawl_history (seq, n, attempt, at, error, stack) VALUES (?, ?, ?, ?, ?, ?)`,
		int64(j.Seq), int64(n), int64(f.Attempt), nanos(f.At), []byte(f.Error), []byte(f.Stack))
	if n > pawl.HistoryKeepHead+pawl.HistoryKeepTail {
		t.exec(`DELETE FROM pawl_history WHERE seq = ? AND n = ?`, int64(j.Seq), int64(n-pawl.HistoryKeepTail))
	}
}

// conclude applies the changes of a committed transaction to the scheduler. It emits the events and
// answers the calls.
func (t *txn) conclude() {
	for _, fn := range t.results {
		fn()
	}
	for _, fn := range t.after {
		fn()
	}
	t.q.lines = t.lines
	t.q.reporter.Count(t.totals)
	t.q.reporter.Emit(t.events...)
	for _, e := range t.events {
		t.q.waiters.Report(e)
	}
	for id := range t.settled {
		t.q.waiters.Look(id)
	}
	t.q.publish()
	for i, c := range t.calls {
		c.Answer(t.answers[i])
	}
}

// lines are the queues and their kinds.
type lines struct {
	queues map[string]*line
	names  map[int64]lineName
}

// line is a queue.
type line struct {
	id     int64
	name   string
	paused bool
	kinds  map[string]int64
}

// lineName is a queue and a kind.
type lineName struct {
	queue *line
	kind  string
}

// sqlLines reads the queues, with a row for each of their kinds.
const sqlLines = `SELECT q.id, q.name, q.paused, l.id, l.kind FROM pawl_queue q LEFT JOIN pawl_line l ON l.queue = q.id ORDER BY q.id, l.id`

// readLines reads the queues and their kinds.
func readLines(c conn) (*lines, error) {
	ls := &lines{queues: make(map[string]*line), names: make(map[int64]lineName)}
	err := c.query(sqlLines, func(v []driver.Value) error {
		l := ls.queue(number(v[0]), string(bytesOf(v[1])), number(v[2]) != 0)
		if v[3] != nil {
			ls.add(l, string(bytesOf(v[4])), number(v[3]))
		}
		return nil
	})
	return ls, err
}

func (ls *lines) queue(id int64, name string, paused bool) *line {
	l := ls.queues[name]
	if l == nil {
		l = &line{id: id, name: name, kinds: make(map[string]int64)}
		ls.queues[name] = l
	}
	l.paused = paused
	return l
}

func (ls *lines) add(l *line, kind string, id int64) {
	l.kinds[kind] = id
	ls.names[id] = lineName{l, kind}
}

// all returns the queues and their kinds, as the transaction sees them.
func (t *txn) all() *lines {
	if t.lines == nil {
		found, err := readLines(t.c)
		if t.err == nil {
			t.err = err
		}
		t.lines, t.ownLines = found, true
	}
	return t.lines
}

// change returns the lines to change. Those of earlier transactions stay as they are.
func (t *txn) changeLines() *lines {
	ls := t.all()
	if t.ownLines {
		return ls
	}
	c := &lines{queues: make(map[string]*line), names: make(map[int64]lineName)}
	for _, l := range ls.queues {
		own := c.queue(l.id, l.name, l.paused)
		for kind, id := range l.kinds {
			c.add(own, kind, id)
		}
	}
	t.lines, t.ownLines = c, true
	return c
}

// queueOf returns a queue, which it stores if it is new.
func (t *txn) queueOf(name string) *line {
	if l := t.all().queues[name]; l != nil {
		return l
	}
	var id int64
	t.query(`INSERT INTO pawl_queue (name) VALUES (?) RETURNING id`, one(&id), []byte(name))
	return t.changeLines().queue(id, name, false)
}

// lineOf returns the number of a queue and a kind, which it stores if they are new.
func (t *txn) lineOf(queue, kind string) int64 {
	l := t.queueOf(queue)
	if id, known := l.kinds[kind]; known {
		return id
	}
	var id int64
	t.query(`INSERT INTO pawl_line (queue, kind) VALUES (?, ?) RETURNING id`, one(&id), l.id, []byte(kind))
	ls := t.changeLines()
	ls.add(ls.queues[queue], kind, id)
	return id
}

// nameOf returns the queue and the kind of a line.
func (t *txn) nameOf(id int64) (queue, kind string, err error) {
	n, known := t.all().names[id]
	if !known {
		return "", "", fmt.Errorf("%w: there is no line %d", pawl.ErrCorrupt, id)
	}
	return n.queue.name, n.kind, nil
}
