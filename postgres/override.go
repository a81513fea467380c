package postgres

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The row of a queue in table limits has the limits in force. If an operator overrides the limits that the program
// declares, the row of the queue in table declared has the declared limits. Fetches do not read table declared.

const (
	// sqlLockDeclared lets one transaction at a time change limits. Transactions that only read continue.
	sqlLockDeclared = `LOCK TABLE pawl.declared IN SHARE ROW EXCLUSIVE MODE`

	sqlDeclared    = `SELECT queue, ` + limitColumns + `, false, 0::int8 FROM pawl.declared WHERE queue = ANY($1)`
	sqlAddDeclared = `INSERT INTO pawl.declared (queue, ` + limitColumns + `, waiting)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::int2, $13, $14, $15, $16, $17)`
	sqlRemoveDeclared = `DELETE FROM pawl.declared WHERE queue = $1`

	// sqlEndKeyRests ends the rests of the keys of a queue.
	sqlEndKeyRests = `UPDATE pawl.pace SET rests = 0 WHERE queue = $1 AND key <> ''::bytea AND rests > 0`
)

// limitsChange is a transaction that changes the limits of queues.
type limitsChange struct {
	ctx context.Context
	tx  Tx
	sql func(statement string) string

	pools bool // a queue came into a pool, left one, or has another number
}

// decision returns the new limits in force of a queue, and the declared limits if they differ from these, else nil. Its
// arguments are the current values of both.
type decision func(inForce pawl.Limits, declared *pawl.Limits) (pawl.Limits, *pawl.Limits, error)

// declaring is the decision of a program that declares limits.
func declaring(l pawl.Limits) decision {
	return func(inForce pawl.Limits, declared *pawl.Limits) (pawl.Limits, *pawl.Limits, error) {
		if declared == nil {
			return l, nil, nil
		}
		return driver.Override(l, inForce), &l, nil
	}
}

// overriding is the decision of an operator who sets limits.
func overriding(l pawl.Limits) decision {
	return func(inForce pawl.Limits, declared *pawl.Limits) (pawl.Limits, *pawl.Limits, error) {
		if declared == nil {
			declared = &inForce
		}
		return l, declared, driver.CheckOverride(*declared, l)
	}
}

// resetting is the decision of an operator who restores the declared limits.
func resetting(inForce pawl.Limits, declared *pawl.Limits) (pawl.Limits, *pawl.Limits, error) {
	if declared == nil {
		return inForce, nil, nil
	}
	return *declared, nil, nil
}

// of changes the limits of a queue as decide says. If any limits except bounds change, it excludes fetches from the
// queue until its commit. An error of decide changes nothing.
func (c *limitsChange) of(name string, decide decision) error {
	if _, err := c.tx.Exec(c.ctx, c.sql(sqlLockDeclared)); err != nil {
		return err
	}
	names := []string{name}
	limits, err := readLimits(c.ctx, c.tx, c.sql, names)
	if err != nil {
		return err
	}
	beside, err := readDeclared(c.ctx, c.tx, c.sql, names)
	if err != nil {
		return err
	}
	before, declared := limits[name].Limits, beside[name]
	l, after, err := decide(before, declared)
	if err != nil {
		return err
	}
	if err := c.declare(name, declared, after); err != nil {
		return err
	}
	if err := c.putBound(name, boundOf(before), boundOf(l)); err != nil {
		return err
	}
	if l.Fair && !before.Fair { // tags start over, behind the jobs that are ready
		if _, err := c.tx.Exec(c.ctx, c.sql(sqlForgetFronts), []byte(name)); err != nil {
			return err
		}
	}
	before.MaxWaiting, l.MaxWaiting = 0, 0 // table limits does not have MaxWaiting
	return c.put(name, before, l)
}

// readLimits reads the limits in force of queues.
func readLimits(ctx context.Context, tx Tx, sql func(string) string, names []string) (map[string]queueLimits, error) {
	rows, err := tx.Query(ctx, sql(sqlLimits), bytesOf(names))
	if err != nil {
		return nil, err
	}
	all, err := scanLimits(rows)
	if err != nil {
		return nil, err
	}
	if rows, err = tx.Query(ctx, sql(sqlBoundsOf), bytesOf(names)); err != nil {
		return nil, err
	}
	bounds, err := scanBounds(rows)
	for name, bound := range bounds {
		l := all[name]
		l.Limits = withBound(l.Limits, bound)
		all[name] = l
	}
	return all, err
}

// readDeclared reads the declared limits of queues whose limits an operator overrides.
func readDeclared(ctx context.Context, tx Tx, sql func(string) string, names []string) (map[string]*pawl.Limits, error) {
	rows, err := tx.Query(ctx, sql(sqlDeclared), bytesOf(names))
	if err != nil {
		return nil, err
	}
	all, err := scanLimits(rows)
	if err != nil {
		return nil, err
	}
	if rows, err = tx.Query(ctx, sql(sqlDeclaredBounds), bytesOf(names)); err != nil {
		return nil, err
	}
	bounds, err := scanBounds(rows)
	declared := make(map[string]*pawl.Limits)
	for name, bound := range bounds {
		l := withBound(all[name].Limits, bound)
		declared[name] = &l
	}
	return declared, err
}

// declare stores the declared limits of a queue whose limits an operator overrides. Nil removes them.
func (c *limitsChange) declare(name string, before, after *pawl.Limits) error {
	if before == nil && after == nil || before != nil && after != nil && *before == *after {
		return nil
	}
	_, err := c.tx.Exec(c.ctx, c.sql(sqlRemoveDeclared), []byte(name))
	if err == nil && after != nil {
		_, err = c.tx.Exec(c.ctx, c.sql(sqlAddDeclared), append(limitArguments(name, *after), after.MaxWaiting)...)
	}
	return err
}

// put stores the limits in force of a queue, without MaxWaiting. It stores MaxWaitingPerKey, since keys of a queue with
// that bound may rest, and fetches need to know.
func (c *limitsChange) put(name string, inForce, l pawl.Limits) error {
	if l == inForce {
		return nil
	}
	if l.Pool != inForce.Pool {
		c.pools = true
		if _, err := c.tx.Exec(c.ctx, c.sql(sqlAddPool), []byte(l.Pool.Name)); err != nil {
			return err
		}
	}
	rows, err := c.tx.Query(c.ctx, c.sql(sqlLockLimits), bytesOf([]string{name}))
	if err != nil {
		return err
	}
	all, err := scanLimits(rows)
	if err != nil {
		return err
	}
	before := all[name]
	if !l.PerKey() { // otherwise nothing would end the rests of its keys
		if _, err := c.tx.Exec(c.ctx, c.sql(sqlEndKeyRests), []byte(name)); err != nil {
			return err
		}
	}
	if l == (pawl.Limits{}) && !before.turns && before.rests.IsZero() {
		_, err := c.tx.Exec(c.ctx, c.sql(sqlRemoveLimits), []byte(name))
		return err
	}
	if _, err := c.tx.Exec(c.ctx, c.sql(sqlSetLimits), limitArguments(name, l)...); err != nil || l.InOrder == before.InOrder {
		return err
	}
	_, err = c.tx.Exec(c.ctx, c.sql(sqlReorder), []byte(name), int16(l.InOrder))
	return err
}

// SetLimits lets an operator override the limits that programs declare for a queue. The database keeps the override.
// Whatever a later opener declares, it holds for all processes, from their next fetch on, until a call of SetLimits
// with nil. It also applies to the jobs that are already in the queue. A queue may have limits before its first job.
//
// The override cannot change the order of keys: SetLimits returns an *[pawl.InvalidError] for another order than the
// program declares, for invalid limits, and for limits that the engine lacks. If a program later declares another
// order, the override adopts it.
func (q *Queue) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	if err := driver.CheckQueue(queue); err != nil {
		return err
	}
	if l == nil {
		return q.submit(ctx, &override{queue, resetting, false})
	}
	if err := driver.SupportsLimits(abilities, *l); err != nil {
		return err
	}
	return q.submit(ctx, &override{queue, overriding(*l), true})
}

// override is a call of SetLimits.
type override struct {
	queue  string
	decide decision
	adds   bool // it adds the queue, so that statistics include it
}

func (op *override) needs(*needs) {}

func (op *override) apply(t *txn) error {
	c := limitsChange{ctx: t.ctx, tx: t.tx, sql: t.q.sql}
	if err := c.of(op.queue, op.decide); err != nil {
		return err
	}
	if op.adds {
		t.write(sqlAddQueues, bytesOf([]string{op.queue}))
	}
	delete(t.taken, op.queue)
	t.news.ready(op.queue)
	t.news.any = t.news.any || c.pools
	t.stir()
	return nil
}
