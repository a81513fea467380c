package workflow

import (
	"context"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// put is one row to write, encoded outside the transaction.
type put struct {
	table      *driver.Table
	key, value []byte
}

// journal is a list of entries to write. For an execution, its backlog is written first.
type journal struct {
	x     *execution // nil for the journal of another run
	puts  []put
	bytes int
}

// backlog is the entries that need no write of their own. The next write for the run contains
// them. They are written in order, and before all later entries. The execution's lock guards
// the backlog.
type backlog struct {
	puts  []put
	bytes int
	base  int           // how many entries came before puts, all of them durable
	tx    driver.Writer // the transaction that wrote last
	wrote int           // total entries after that transaction

	results int // total entries up to the last one that has ended
	waiting int // total entries up to the last one that is not the start of a branch
	held    int // total entries up to the last end of a step
}

// add appends an entry.
func (b *backlog) add(j *journal, begins bool) {
	b.puts = append(b.puts, j.puts...)
	b.bytes += j.bytes
	if !begins {
		b.waiting = b.base + len(b.puts)
	}
}

// restless reports whether the backlog has an entry whose loss would matter: any entry except
// the start of a branch.
func (b *backlog) restless() bool { return b.waiting > b.base }

// missing returns what a transaction has not written yet. A failed transaction has written
// nothing.
func (b *backlog) missing(tx driver.Writer) []put {
	if b.tx != tx {
		b.tx, b.wrote = tx, b.base
	}
	return b.puts[max(0, b.wrote-b.base):]
}

// durable drops what a transaction has written.
func (b *backlog) durable(upTo int) {
	for _, p := range b.puts[:max(0, upTo-b.base)] {
		b.bytes -= p.size()
	}
	b.puts = b.puts[max(0, upTo-b.base):]
	b.base = max(b.base, upTo)
}

func (p *put) size() int { return len(p.key) + len(p.value) }

// take returns what to write to the journal: the backlog at the time of the transaction, and
// the given entries. The caller holds the lock.
func (x *execution) take(entries ...*entry) (j journal) {
	j = journal{x: x, bytes: x.backlog.bytes}
	for _, e := range entries {
		j.add(x.run, e)
	}
	return j
}

func (j *journal) add(run pawl.ID, e *entry) {
	row := *e
	key := seqKey(run, e.seq)
	if row.Apart = e.Apart || len(e.Result) > maxInline; row.Apart {
		if e.Result != nil {
			j.put(tableBlobs, key, e.Result)
		}
		row.Result = nil
	}
	j.put(tableSteps, key, encodeEntry(&row))
}

func (j *journal) put(t *driver.Table, key, content []byte) {
	p := put{table: t, key: key, value: driver.Seal(t, key, content)}
	j.puts = append(j.puts, p)
	j.bytes += p.size()
}

func (j *journal) apply(r rows) error {
	if j.x != nil {
		if err := j.x.applyBacklog(r); err != nil {
			return err
		}
	}
	return r.putEach(j.puts)
}

// unwritten returns the entries of the backlog.
func (x *execution) unwritten() []put {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.backlog.puts)
}

// applyBacklog writes the part of the backlog that the transaction has not written yet.
func (x *execution) applyBacklog(r rows) error {
	x.mu.Lock()
	missing := x.backlog.missing(r.w)
	x.backlog.wrote += len(missing)
	upTo := x.backlog.wrote
	x.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	r.w.OnCommit(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.backlog.durable(upTo)
	})
	return r.putEach(missing)
}

func (r rows) putEach(puts []put) error {
	for _, p := range puts {
		if err := r.w.Put(p.table, p.key, p.value); err != nil {
			return err
		}
	}
	return nil
}

// writing returns the context for writes of the run. It does not end when the worker stops,
// so that the result of a step is still written.
func (x *execution) writing() context.Context { return context.WithoutCancel(x.ctx) }

// checkpoint is the mutation that writes entries of a running run.
type checkpoint struct {
	lease   *pawl.Lease
	journal journal
}

// Check requires the lease.
func (c *checkpoint) Check(ops driver.Ops) error { return ops.Hold(c.lease) }

// Apply writes the entries.
func (c *checkpoint) Apply(tx driver.Writer) error { return c.journal.apply(rowsTo(tx)) }

// save writes entries. After an error the content of the file is unknown, so the run stops.
func (x *execution) save(entries ...*entry) error {
	x.mu.Lock()
	c := &checkpoint{x.lease, x.take(entries...)}
	x.mu.Unlock()
	if err := x.mutate(x.writing(), c, c.journal.bytes); err != nil {
		return x.stop(err)
	}
	return nil
}

// later leaves an entry to the next write, because the run can reproduce it after a crash.
func (x *execution) later(e *entry) {
	var j journal
	j.add(x.run, e)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queueEntry(&j, e)
}

// queueEntry adds an entry to the backlog. The caller holds the lock.
func (x *execution) queueEntry(j *journal, e *entry) {
	x.backlog.add(j, e.Kind.begins())
	if e.State == EntryDone || e.State == EntryFailed && !e.Kind.begins() {
		x.backlog.results = x.backlog.waiting
	}
}
