package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// txn is one transaction of the scheduler. It reads the jobs that its calls name, lets the calls
// change them in memory, and writes the changes. Its changes to the scheduler wait for the commit.
type txn struct {
	core.Moves[*job] // Now is the wall clock

	q      *Queue
	ctx    context.Context
	tx     *pipe
	calls  []*call // calls that it has accepted
	stage  stage
	number int64
	mono   time.Time // monotonic time
	xid    int64     // ID of a transaction of the app; 0 for none

	jobs     map[pawl.ID]*job   // jobs that were read or made
	touched  []*job             // jobs to write, in the order in which they were first changed
	holders  map[string]pawl.ID // holders of unique keys, after the calls so far
	owners   map[string]pawl.ID // holders of unique keys, as they were read
	effects  map[string]effect  // to write, by name
	restored []driver.Effect    // to write
	notes    []*storeNotes      // to write
	looked   map[pawl.ID]bool   // jobs that it has looked for
	prerequisites
	turns
	backlog
	fairness
	settled map[pawl.ID]bool  // leases that ended
	extends map[pawl.ID]bool  // leases that were extended
	granted map[pawl.ID]int64 // the tokens of its new leases
	reaped  int
	looks   bool // a call needs a look at the leases of other processes

	rows   *rows // rows of other packages and of groups; nil until needed
	groups driver.Groups
	limits map[string]queueLimits // limits of the queues of its fetches; nil until they are read
	pooled bool                   // it has locked the pools of these queues
	taken  map[string]pawl.Limits // limits of the queues of new jobs with a cost, once they are read
	rest   time.Time              // when a rate has room for a waiting fetch; zero for never
	broken error                  // error that ends the transaction, whatever the calls return
	vain   bool                   // there is nothing to commit

	seqs      seqs // for new jobs
	unclaimed int  // how many ended claims it has removed

	fetches []*fetch // fetches among the calls
	looking []*fetch // fetches that it has accepted
	leasing []*fetch // fetches that it has jobs for
	events  []pawl.Event
	totals  driver.Totals // its transitions; events has some of them
	news    news          // for other processes
	answers []error       // of the calls
	results []func()      // functions that return results to callers, if the transaction may have been committed
	after   []func()      // run after the commit
}

// stage is the progress of a transaction.
type stage int

const (
	stageFence stage = iota
	stageCalls
	stageUpkeep // due work and waiting fetches, whatever the calls are
)

// began reports whether the transaction has passed its fence.
func (t *txn) began() bool { return t != nil && t.stage > stageFence }

func newTxn(q *Queue, ctx context.Context, tx Tx) *txn {
	t := &txn{
		q: q, ctx: ctx, tx: &pipe{Tx: tx}, number: q.commits,
		prerequisites: newPrerequisites(),
		settled:       make(map[pawl.ID]bool), extends: make(map[pawl.ID]bool), granted: make(map[pawl.ID]int64),
	}
	t.Moves = core.NewMoves(t, q.opts.MaxCrashes)
	t.forget()
	return t
}

// forget drops the jobs that were read. The next statement may change them behind its back.
func (t *txn) forget() {
	t.jobs, t.holders, t.effects = make(map[pawl.ID]*job), make(map[string]pawl.ID), make(map[string]effect)
	t.owners, t.touched, t.looked = make(map[string]pawl.ID), nil, make(map[pawl.ID]bool)
}

// run accepts calls and carries them out, then does due work, and serves the waiting fetches.
func (t *txn) run(calls []*call) error {
	known, err := t.begin(calls)
	if err != nil {
		return err
	}
	var n needs
	for _, c := range calls {
		if c.Accept() {
			t.calls = append(t.calls, c)
			c.needs(&n)
		}
	}
	if !known {
		if err := t.mutations(&n); err != nil {
			return err
		}
		if err := t.read(&n); err != nil {
			return err
		}
		if err := t.tx.send(t.ctx); err != nil {
			return err
		}
	}
	if err := t.lockGroups(n.groups()); err != nil {
		return err
	}
	if err := t.lockBounds(t.calls); err != nil {
		return err
	}
	for _, c := range t.calls {
		err := c.apply(t)
		if t.answers = append(t.answers, err); err != nil && (isRace(err) || t.isBroken()) {
			return err
		}
		if t.broken == nil && t.rows != nil {
			t.broken = t.rows.err // of a group
		}
		if t.broken != nil {
			return t.broken
		}
	}
	if t.vain = t.isVain(); t.vain {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	if t.mono.Before(t.q.resume) && !hasFetch(t.calls) {
		return nil
	}
	t.tx.then(func() { t.stage = stageUpkeep })
	if err := t.maintain(); err != nil {
		return err
	}
	return t.serve()
}

// isVain reports whether a transaction has refused all its calls, and nothing is due. Then it does not commit,
// which would cost a sync. It gave no lease and extended none, so the lease of the process does not have to last
// longer.
func (t *txn) isVain() bool {
	return len(t.calls) > 0 && !slices.Contains(t.answers, nil) && len(t.q.doubtful) == 0 && !t.q.isDue()
}

// isBroken reports whether the server has aborted the transaction.
func (t *txn) isBroken() bool {
	conn := t.q.conn.PgConn()
	return conn.IsClosed() || conn.TxStatus() != 'T'
}

// reopen makes calls and fetches available again that a transaction without effect had accepted.
func (t *txn) reopen() {
	for _, c := range t.calls {
		c.Reopen()
	}
	for _, f := range t.looking {
		f.Reopen()
	}
}

// hasFetch reports whether one of the calls is a fetch, which upkeep serves.
func hasFetch(calls []*call) bool {
	return slices.ContainsFunc(calls, func(c *call) bool { _, is := c.operation.(*fetch); return is })
}

// begin begins the transaction. In the same round trip it reads the needs of the calls, if these need only the
// jobs of their leases. All reports whether that covers everything.
func (t *txn) begin(calls []*call) (all bool, err error) {
	t.tx.held.Queue("begin isolation level read committed")
	if t.q.brief > 0 {
		t.tx.held.Queue(fmt.Sprint("set local lock_timeout = ", t.q.brief.Milliseconds()))
	}
	t.fence()
	n, seqs, all := foresee(calls)
	t.readOrders(n.ordered)
	if seqs > 0 {
		t.write(sqlSeqs, blocksOf(seqs)).Query(t.seqs.read)
	}
	if all {
		err = t.mutations(&n)
	}
	if err == nil && all && len(n.ids) > 0 {
		_, err = t.load(n.ids)
	}
	return all, errors.Join(err, t.tx.send(t.ctx))
}

// foresee returns what calls need, and how many sequences, to the extent that is known before they are accepted.
// Until then, a caller may withdraw its call, and then owns the arguments again.
func foresee(calls []*call) (n needs, seqs int, all bool) {
	all = true
	for _, c := range calls {
		switch op := c.operation.(type) {
		case *settle:
			for i := range op.settlements {
				n.ids = append(n.ids, op.settlements[i].Lease.ID)
			}
		case *enqueue:
			seqs += len(op.jobs)
			for queue := range op.keyed {
				n.ordered = append(n.ordered, queue)
			}
			all = all && !op.names
		case *mutate:
			op.needs(&n)
			all = all && !op.alone
		case *fetch, *extend:
		default:
			all = false
		}
	}
	return n, seqs, all
}

// fence proves that this process still has its leases, and reads the clock.
func (t *txn) fence() {
	t.mono = time.Now() // before the server reads its clock, so that no lease of a job outlasts the lease of the process
	t.write(sqlFence, t.q.process, t.number, t.q.clock(), int64(t.q.opts.Lease)).QueryRow(func(row pgx.Row) error {
		var now int64
		if err := row.Scan(&now, &t.revision); err == pgx.ErrNoRows {
			return errLost
		} else if err != nil {
			return err
		}
		if t.Now = timeOf(now); t.q.opts.Now != nil {
			t.Now = t.q.opts.Now().Round(0)
		}
		t.watchClock()
		t.stage = stageCalls
		return nil
	})
}

// watchClock notices that the wall clock was set since the last transaction. The rows of other processes then
// have times of the old clock, until these processes have extended their leases.
func (t *txn) watchClock() {
	step := t.Now.Sub(t.q.now) - t.mono.Sub(t.q.mono)
	if !t.q.mono.IsZero() && step.Abs() > t.q.opts.Lease/2 {
		t.q.opts.Logger.Warn("the wall clock was set", "by", step)
		t.q.trusted = t.mono.Add(t.q.opts.Lease)
	}
	t.q.now, t.q.mono = t.Now, t.mono
}

// read reads what the calls need: the holders of unique keys, and then all jobs together, so that
// every transaction locks jobs in the same order. If the holder of a key changes in between, the
// keys cannot be written, and the transaction runs again.
func (t *txn) read(n *needs) error {
	ids := n.ids
	for _, id := range n.named {
		t.named[id] = true
	}
	if n.restores {
		t.write(sqlLockJobs)
	}
	if len(n.keys) > 0 {
		rows, err := t.tx.Query(t.ctx, t.q.sql(sqlHolders), n.keys)
		if err != nil {
			return err
		}
		var name []byte
		var id pgtype.UUID
		_, err = pgx.ForEachRow(rows, []any{&name, &id}, func() error {
			t.holders[string(name)], t.owners[string(name)] = id.Bytes, id.Bytes
			ids = append(ids, id.Bytes)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		if _, err := t.load(ids); err != nil {
			return err
		}
	}
	return t.readAwaited(n.awaited)
}

// load reads jobs by their IDs, and locks them.
func (t *txn) load(ids []pawl.ID) (jobs []*job, err error) {
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlLoad), uuids(ids))
	if err != nil {
		return nil, err
	}
	return t.scan(rows)
}

// scan reads jobs. It makes jobs with damaged records dead, and omits them.
func (t *txn) scan(rows pgx.Rows) (jobs []*job, err error) {
	defer rows.Close()
	damaged := make(map[pawl.ID]error)
	for rows.Next() {
		var row jobRow
		if err := rows.Scan(row.fields()...); err != nil {
			return nil, err
		}
		j, known := t.jobs[row.id.Bytes]
		if !known {
			if j, err = row.job(); err != nil {
				damaged[row.id.Bytes] = err
				continue
			}
			t.jobs[j.ID] = j
		}
		jobs = append(jobs, j)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return jobs, t.makeCorrupt(damaged, 0)
}

// Get returns a job that the transaction has read, nil if there is none with the ID.
func (t *txn) Get(id pawl.ID) *job {
	if j := t.jobs[id]; j != nil && !j.gone {
		return j
	}
	return nil
}

// conclude applies the changes of a committed transaction to the scheduler. It emits the events and answers the
// calls.
func (t *txn) conclude() {
	if t.q.opts.Now == nil {
		t.q.skew = t.Now.Sub(t.mono.Round(0))
	}
	for _, fn := range t.results {
		fn()
	}
	t.q.unclaimed = t.q.unclaimed[t.unclaimed:]
	for _, fn := range t.after {
		fn()
	}
	t.q.reporter.Count(t.totals)
	t.q.reporter.Emit(t.events...)
	for _, e := range t.events {
		t.q.waiters.Report(e)
	}
	t.q.bell.announce(t.news)
	for id := range t.settled {
		t.q.waiters.Look(id)
	}
	t.q.publish()
	for i, c := range t.calls {
		c.Answer(t.answers[i])
	}
}
