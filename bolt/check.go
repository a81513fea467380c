package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// maxViolations limits how many findings one check returns.
const maxViolations = 100

// Check compares every row of the queue with every other, in one read transaction:
//
//   - each job is in exactly one state, and the row for that state follows from the job's
//     record
//   - a job is leased if and only if it has a lease
//   - every row matches its checksum, and rows, payloads and histories belong to a job
//   - the counts match a full scan
//   - for each limited key, the first waiting jobs that there is room for can be fetched
//   - keys, deadlines and retentions lead to the jobs that have them
//
// Check joins its findings, at most a hundred, in one error. Each finding is a [pawl.ErrCorrupt] or
// accompanies one. Check keeps a row for each job in memory, and pages freed in that time are not
// reused until it ends. It checks rows, not the pages that hold them: Open checks the pages. Its
// progress, see [driver.WithProgress], is in steps, three for each job by the counts in the file.
func (r *reader) Check(ctx context.Context) error {
	return r.view(ctx, func(s *store) error { return s.violations(ctx) })
}

// violations is Check within a transaction.
func (s *store) violations(ctx context.Context) error {
	c := &check{
		store:  s,
		ctx:    ctx,
		rows:   make(map[pawl.ID]stateRow),
		counts: make(map[line]pawl.Counts),
		queues: make(map[queueNumber]string),
		kinds:  make(map[kindNumber]string),
		keyed:  make(map[string]*keyScan),
		groups: make(map[string]*driver.GroupRow),

		holders: make(map[string]pawl.ID),
		blocked: make(map[string]pawl.ID),
		unblock: make(map[string]bool),
	}
	c.progress = beginSteps(ctx, s.checkSteps(), progressRows)
	for _, step := range []func(){c.queueRows, c.stateRows, c.effectRows, c.jobRecords, c.belongings, c.comparedCounts, c.keys, c.comparedGroups, c.prerequisites, c.notes} {
		if step(); c.done() {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.found == nil {
		c.progress.end()
		return nil
	}
	return fmt.Errorf("%w: %w", pawl.ErrCorrupt, errors.Join(c.found...))
}

// check is the state of one Check.
type check struct {
	*store
	ctx    context.Context
	rows   map[pawl.ID]stateRow // one for every job that has a row
	counts map[line]pawl.Counts // results of the scan
	queues map[queueNumber]string
	kinds  map[kindNumber]string
	keyed  map[string]*keyScan         // keys of queues that limit them
	groups map[string]*driver.GroupRow // results of the scan: members that are pending or dead
	found  []error

	holders map[string]pawl.ID // the job that holds each effect
	blocked map[string]pawl.ID // a job that each effect blocks, by queue
	unblock map[string]bool    // effects of ready jobs, by queue

	progress *progress
}

// checkSteps returns how many steps a check makes: for each job one for the row of its state, and two for its
// record.
func (s *store) checkSteps() (steps int64) {
	_ = s.eachQueue(func(n queueNumber, _ *queueRow) error { // the check reports damage
		counts, err := s.countsOf(n)
		for _, state := range pawl.States() {
			steps += 3 * int64(max(0, *driver.CountOf(&counts, state)))
		}
		return err
	})
	return steps
}

// notes requires that progress, logs, and the counts of the throughput can be read.
func (c *check) notes() {
	driver.CheckRows(c.others(), func(err error) { c.wrong("%w", err) })
}

// stateRow is a row that says where a job is.
type stateRow struct {
	state   pawl.State
	flags   flags
	blocked bool
}

func (c *check) wrong(format string, args ...any) {
	if len(c.found) < maxViolations {
		c.found = append(c.found, fmt.Errorf(format, args...))
	}
}

func (c *check) done() bool { return len(c.found) >= maxViolations || c.ctx.Err() != nil }

// each calls fn for every row of a table.
func (c *check) each(b *table, fn func(k, v []byte)) {
	rows := b.Cursor()
	for k, v := rows.First(); k != nil && !c.done(); k, v = rows.Next() {
		fn(k, v)
	}
}

// queueRows reads the queues and kinds, for later steps, and requires that name and number lead
// to each other.
func (c *check) queueRows() {
	err := c.eachQueue(func(n queueNumber, row *queueRow) error {
		c.queues[n] = row.name
		if number, ok, err := c.number(row.name); err != nil || !ok || number != n {
			c.wrong("queue %q has number %d, its name leads to %d (%v)", row.name, n, number, err)
		}
		return nil
	})
	if err != nil {
		c.wrong("queues: %w", err)
	}
	c.each(c.store.queues, c.kindRow)
	c.each(c.store.queues, func(k, _ []byte) {
		switch name := string(k[1:]); k[0] {
		case queueByName:
			if n, _, err := c.number(name); err != nil || c.queues[n] != name {
				c.wrong("the name %q leads to queue %d, which has not that name (%v)", name, n, err)
			}
		case kindByName:
			if n, _, err := c.kind(name); err != nil || c.kinds[n] != name {
				c.wrong("the name %q leads to kind %d, which does not have that name (%v)", name, n, err)
			}
		}
	})
}

// kindRow reads a row if it is the row of a kind.
func (c *check) kindRow(k, _ []byte) {
	if k[0] != kindByNumber || len(k) != 5 {
		return
	}
	n := kindNumber(binary.BigEndian.Uint32(k[1:]))
	name, err := c.kindName(n)
	if err != nil {
		c.wrong("kinds: %w", err)
		return
	}
	c.kinds[n] = name
	if number, ok, err := c.kind(name); err != nil || !ok || number != n {
		c.wrong("kind %q has number %d, its name leads to %d (%v)", name, n, number, err)
	}
}

// stateRows reads the rows of all states.
func (c *check) stateRows() {
	for _, b := range []struct {
		table *table
		state pawl.State
	}{{c.ready, pawl.Ready}, {c.delayed, pawl.Delayed}, {c.leased, pawl.Leased}, {c.failed, pawl.Dead}, {c.completed, pawl.Completed}} {
		c.each(b.table, func(k, v []byte) { c.stateRow(b.table, b.state, k, v) })
	}
}

// stateRow reads a row of a state table.
func (c *check) stateRow(b *table, state pawl.State, k, v []byte) {
	c.progress.add(1)
	id, err := rowID(state, k, v)
	if err != nil {
		c.wrong("row %x: %w", k, err)
		return
	}
	row := stateRow{state: state}
	switch b {
	case c.leased:
		var r leaseRow
		r, err = parseLeaseRow(k, v)
		row.flags = r.flags
	case c.completed, c.failed:
		var r endedRow
		r, err = parseEndedRow(k, v)
		row.flags = r.flags
	case c.delayed:
		var r delayedRow
		r, err = parseDelayedRow(k, v)
		row.flags = r.flags
		row.state = map[byte]pawl.State{waitsForTime: pawl.Delayed, waitsForKey: pawl.Ready, waitsForLimit: pawl.Ready, waitsForTurn: pawl.Ready, waitsForJobs: pawl.Ready}[k[0]]
		row.blocked = k[0] != waitsForTime
	default:
		var r indexRow
		r, err = parseIndexRow(k, v)
		row.flags = r.flags
	}
	if err != nil {
		c.wrong("row %x: %w", k, err)
	}
	if other, ok := c.rows[id]; ok {
		c.wrong("job %s is %s and %s", id, other.state, row.state)
	}
	c.rows[id] = row
}

// jobRecords requires that each job is in one state, and that its record agrees with its other
// rows. It removes the rows of the jobs it found from the map.
func (c *check) jobRecords() {
	c.each(c.jobs, func(k, _ []byte) {
		c.progress.add(2)
		if len(k) != len(pawl.ID{}) {
			c.wrong("key %x is the ID of no job", k)
			return
		}
		id := pawl.ID(k)
		row, ok := c.rows[id]
		delete(c.rows, id)
		j, at, err := c.placed(id)
		if err == nil {
			c.repeated(j, at)
			c.waiting(j, at)
			j.Envelope, err = c.complete(j, at, driver.AllParts)
		}
		switch {
		case !ok:
			c.wrong("job %s is in no state", id)
		case err != nil:
			c.wrong("%w", err)
		default:
			c.jobRecord(j, at, row)
		}
	})
	for id, row := range c.rows {
		c.wrong("a %s row leads to job %s, which is not there", row.state, id)
	}
}

// jobRecord requires that a job agrees with the row that says where it is, and counts it.
func (c *check) jobRecord(j stored, at place, row stateRow) {
	e := j.Envelope
	if e.State != row.state {
		c.wrong("job %s is %s, its record leads to %s", e.ID, row.state, e.State)
	}
	counts := c.counts[at.line]
	*driver.CountOf(&counts, row.state)++
	if row.blocked {
		counts.Blocked++
	}
	if row.state == pawl.Dead && j.HoldsKey {
		counts.Held++
	}
	c.counts[at.line] = counts
	countMember(c.groups, e)
	if row.flags != j.flags() {
		c.wrong("job %s has flags %b in its row, %b in its record", e.ID, row.flags, j.flags())
	}
	if (j.apart != 0) != (c.payloads.Get(e.ID[:]) != nil) {
		c.wrong("job %s says that %d bytes of payload lie apart", e.ID, j.apart)
	}
	if e.Seq > c.jobs.Sequence() {
		c.wrong("job %s has sequence %d, the file is at %d", e.ID, e.Seq, c.jobs.Sequence())
	}
}

// repeated requires that the row that says where a job is repeats what its record says. A damaged row is reported
// with the rows.
func (c *check) repeated(j stored, at place) {
	k, v := at.key, at.table.Get(at.key)
	counted := func(ln line) {
		if ln != at.line {
			c.wrong("the %s job %s counts for kind %q of queue %q, it is of kind %q in %q",
				at.state, j.ID, c.kinds[ln.kind], c.queues[ln.queue], j.Kind, j.Queue)
		}
	}
	switch at.table {
	case c.leased:
		r, err := parseLeaseRow(k, v)
		if err != nil {
			return
		}
		counted(r.line)
		if r.priority != j.Priority || r.seq != j.Seq {
			c.wrong("job %s has priority %d and sequence %d in its lease, %d and %d in its record", j.ID, r.priority, r.seq, j.Priority, j.Seq)
		}
		now := laneOf(j.Envelope)
		saved := now.class() == clean && r.lane.retries() == now.retries() // a save resets the crashes, and the lease keeps its lane
		if r.lane != now && !saved {
			c.wrong("job %s was leased from lane %d, by its record it was in %d", j.ID, r.lane, now)
		}
		if r.key != j.Key {
			c.wrong("job %s has key %q in its lease, %q in its record", j.ID, r.key, j.Key)
		}
	case c.completed, c.failed:
		if r, err := parseEndedRow(k, v); err == nil {
			counted(r.line)
		}
	case c.delayed:
		if r, err := parseDelayedRow(k, v); err == nil && !bytes.Equal(r.ready, readyKey(nil, at.line, j.Envelope)) {
			c.wrong("job %s would be promoted to the wrong place", j.ID)
		}
	}
}

// belongings requires that payloads and histories belong to a job.
func (c *check) belongings() {
	for _, b := range []*table{c.payloads, c.history} {
		c.each(b, func(k, _ []byte) {
			if len(k) < len(pawl.ID{}) || c.jobs.Get(k[:len(pawl.ID{})]) == nil {
				c.wrong("row %x of %s belongs to no job", k, b.name)
			}
		})
	}
}

func (c *check) comparedCounts() {
	c.each(c.store.queues, func(k, v []byte) {
		if k[0] != lineByNumbers {
			return
		}
		row, err := parseLineRow(k, v)
		if err != nil || len(k) != 1+lineWidth {
			c.wrong("row %x of %s: %w", k, c.store.queues.name, err)
			return
		}
		ln := lineAt(k[1:])
		queue, known := c.queues[ln.queue]
		kind, also := c.kinds[ln.kind]
		if !known || !also {
			c.wrong("row %x counts the jobs of a queue or a kind that is not there", k)
		}
		if found := c.counts[ln]; row.counts != found {
			c.wrong("kind %q of queue %q counts %+v, a scan finds %+v", kind, queue, row.counts, found)
		}
		delete(c.counts, ln)
	})
	for ln, found := range c.counts {
		c.wrong("kind %q of queue %q has no row, a scan finds %+v", c.kinds[ln.kind], c.queues[ln.queue], found)
	}
}
