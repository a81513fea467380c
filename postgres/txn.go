package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// txn is one transaction of the scheduler. It reads the jobs that its calls name, lets the calls
// change them in memory, and writes what has changed. What it changes in the scheduler waits for
// the commit.
type txn struct {
	q      *Queue
	ctx    context.Context
	tx     pgx.Tx
	number int64
	now    time.Time // the wall clock
	mono   time.Time // monotonic time

	jobs    map[pawl.ID]*job   // that were read or made
	touched []*job             // those to write, in the order in which they were first changed
	holders map[string]pawl.ID // of unique keys, as far as the calls have come
	owners  map[string]pawl.ID // of unique keys, as they were read
	effects map[string]effect  // to write, by name
	settled map[pawl.ID]bool   // leases that ended
	extends map[pawl.ID]bool   // leases that were extended
	reaped  int

	unclaimed int // how many of the claims that have ended it removed

	fetches []*fetch // that came with the calls
	events  []pawl.Event
	answers []error  // of the calls
	results []func() // complete the envelopes of callers, if the transaction may have been committed
	after   []func() // run after the commit
}

func newTxn(q *Queue, ctx context.Context, tx pgx.Tx) *txn {
	t := &txn{
		q: q, ctx: ctx, tx: tx, number: q.commits + 1,
		settled: make(map[pawl.ID]bool), extends: make(map[pawl.ID]bool),
	}
	t.forget()
	return t
}

// forget drops the jobs that were read. The next statement may change them behind its back.
func (t *txn) forget() {
	t.jobs, t.holders, t.effects = make(map[pawl.ID]*job), make(map[string]pawl.ID), make(map[string]effect)
	t.owners, t.touched = make(map[string]pawl.ID), nil
}

// needs is what the calls of a transaction read before they are carried out.
type needs struct {
	ids  []pawl.ID
	keys [][]byte // unique keys, by name
}

// run carries out calls, then what falls due, and serves the fetches that wait.
func (t *txn) run(calls []*call) error {
	if err := t.fence(); err != nil {
		return err
	}
	var n needs
	for _, c := range calls {
		c.needs(&n)
	}
	if err := t.read(&n); err != nil {
		return err
	}
	for _, c := range calls {
		err := c.apply(t)
		if t.answers = append(t.answers, err); isRace(err) {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.maintain(); err != nil {
		return err
	}
	return t.serve()
}

// fence proves that this process still has its leases, and reads the clock.
func (t *txn) fence() error {
	t.mono = time.Now() // before the server reads its clock, so that no lease of a job outlasts that of the process
	var now int64
	err := t.tx.QueryRow(t.ctx, t.q.sql(sqlFence), t.q.process, t.number, t.q.clock(), int64(t.q.opts.Lease)).Scan(&now)
	if err == pgx.ErrNoRows {
		return errLost
	}
	if t.now = timeOf(now); t.q.opts.Now != nil {
		t.now = t.q.opts.Now().Round(0)
	}
	return err
}

// read reads what the calls need.
func (t *txn) read(n *needs) error {
	if len(n.keys) > 0 {
		rows, err := t.tx.Query(t.ctx, t.q.sql(sqlHolders), n.keys)
		if err != nil {
			return err
		}
		if err := t.scan(rows, func(j *job, name []byte) {
			t.holders[string(name)], t.owners[string(name)] = j.ID, j.ID
		}, nil); err != nil {
			return err
		}
	}
	if len(n.ids) == 0 {
		return nil
	}
	_, err := t.load(n.ids)
	return err
}

// load reads jobs by their IDs, and locks them.
func (t *txn) load(ids []pawl.ID) (jobs []*job, err error) {
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlLoad), uuids(ids))
	if err != nil {
		return nil, err
	}
	return jobs, t.scan(rows, nil, &jobs)
}

// scan reads jobs, and appends them to a list unless that is nil. If named is not nil, it gets each
// job with the name in the first column.
func (t *txn) scan(rows pgx.Rows, named func(j *job, name []byte), list *[]*job) error {
	defer rows.Close()
	for rows.Next() {
		var row jobRow
		var name []byte
		into := row.fields()
		if named != nil {
			into = append([]any{&name}, into...)
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		j, err := row.job()
		if err != nil {
			return err
		}
		if known := t.jobs[j.ID]; known != nil {
			j = known
		}
		t.jobs[j.ID] = j
		if named != nil {
			named(j, name)
		}
		if list != nil {
			*list = append(*list, j)
		}
	}
	return rows.Err()
}

// get returns a job that the transaction has read, nil if there is none of the ID.
func (t *txn) get(id pawl.ID) *job {
	if j := t.jobs[id]; j != nil && !j.gone {
		return j
	}
	return nil
}

// conclude changes the scheduler as the transaction, which was committed, says. It emits the
// events and answers the calls.
func (t *txn) conclude(calls []*call) {
	t.q.now = t.now
	if t.q.opts.Now == nil {
		t.q.skew = t.now.Sub(t.mono.Round(0))
	}
	for _, fn := range t.results {
		fn()
	}
	t.q.unclaimed = t.q.unclaimed[t.unclaimed:]
	for _, fn := range t.after {
		fn()
	}
	for _, e := range t.events {
		if e.Type == pawl.EventDied {
			t.logDeath(e)
		}
		if t.q.opts.Collector != nil {
			driver.CountEvent(t.q.opts.Collector, e)
		}
		if t.q.opts.OnEvent != nil {
			t.q.opts.OnEvent(e)
		}
	}
	t.q.publish()
	for i, c := range calls {
		c.answer(t.answers[i])
	}
}
