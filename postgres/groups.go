package postgres

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Members of groups are counted in the transaction that moves them; see [driver.Groups]. It locks the row of
// the group until its commit, so transactions of several processes count one after another. A transaction
// without members does not read rows of groups.

// sqlFreeRows is sqlLockRows for the rows that no other session has locked, and sqlPresentRows names those that exist.
const (
	sqlFreeRows    = sqlLockRows + ` SKIP LOCKED`
	sqlPresentRows = `SELECT kv.tab, kv.key FROM pawl.kv JOIN unnest($1::int4[], $2::bytea[]) AS n(tab, key) USING (tab, key)`
)

// countedRows are the rows of groups. Each is locked when it is read. The mutations that the transaction
// carries out see what it writes.
type countedRows struct{ *rows }

// counted returns the rows of groups.
func (t *txn) counted() countedRows {
	if t.rows == nil {
		t.rows = newRows(t.q, t.ctx, t.tx)
		t.after = append(t.after, t.rows.remember)
	}
	return countedRows{t.rows}
}

// Get implements [driver.Reader].
func (c countedRows) Get(table *driver.Table, key []byte) ([]byte, error) {
	tr, err := c.of(table)
	if err != nil {
		return nil, err
	}
	r, known := tr.known(string(key))
	if !known && c.cover.alone {
		return c.rows.Get(table, key)
	}
	if !known {
		var n driver.Needs
		n.Row(table, key)
		if err := c.prepare([]*driver.Needs{&n}); err != nil {
			return nil, err
		}
		r, _ = tr.known(string(key))
	}
	if r == nil {
		return nil, nil
	}
	return r.value, nil
}

// lockGroups locks the rows of the groups that the calls name, and of the groups of the jobs that they name.
func (t *txn) lockGroups(names map[string]bool) error {
	for _, j := range t.jobs {
		if j.Group != "" {
			names[j.Group] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	c := t.counted()
	if c.cover.alone {
		return nil
	}
	var n driver.Needs
	for _, name := range slices.Sorted(maps.Keys(names)) {
		driver.DeclareGroup(&n, name)
	}
	return c.prepare([]*driver.Needs{&n})
}

// countable returns the jobs whose groups no other session has locked. It locks these groups.
func (t *txn) countable(jobs []*job) ([]*job, error) {
	var n driver.Needs
	seen := make(map[string]bool)
	for _, j := range jobs {
		if j.Group != "" && !seen[j.Group] {
			seen[j.Group] = true
			driver.DeclareGroup(&n, j.Group)
		}
	}
	if len(n.Rows) == 0 {
		return jobs, nil
	}
	c := t.counted()
	tr, err := c.of(n.Rows[0].Table)
	if err != nil || c.cover.alone {
		return jobs, err
	}
	var tables []int32
	var keys [][]byte
	locked := make(map[string]bool) // true until the row is known to be free
	for _, r := range n.Rows {
		if _, known := tr.known(string(r.Key)); !known {
			tables, keys, locked[string(r.Key)] = append(tables, tr.id), append(keys, r.Key), true
		}
	}
	if len(keys) == 0 {
		return jobs, nil
	}
	var batch pgx.Batch
	batch.Queue(c.q.sql(sqlLockTogether))
	batch.Queue(c.q.sql(sqlFreeRows), tables, keys).Query(func(found pgx.Rows) error {
		var id int32
		var key, value []byte
		_, err := pgx.ForEachRow(found, []any{&id, &key, &value}, func() error {
			tr.learn(string(key), value)
			delete(locked, string(key))
			return nil
		})
		return err
	})
	present := make(map[string]bool)
	batch.Queue(c.q.sql(sqlPresentRows), tables, keys).Query(func(found pgx.Rows) error {
		var id int32
		var key []byte
		_, err := pgx.ForEachRow(found, []any{&id, &key}, func() error {
			present[string(key)] = true
			return nil
		})
		return err
	})
	if err := c.tx.SendBatch(t.ctx, &batch).Close(); err != nil {
		return nil, err
	}
	for key := range locked {
		if !present[key] {
			tr.learn(key, nil)
			delete(locked, key)
		}
	}
	return slices.DeleteFunc(jobs, func(j *job) bool {
		if j.Group == "" {
			return false
		}
		var n driver.Needs
		driver.DeclareGroup(&n, j.Group)
		return locked[string(n.Rows[0].Key)]
	}), nil
}

// Member implements [core.Txn].
func (t *txn) Member(group string, from, to driver.Standing) {
	t.groups.Move(t.counted(), group, from, to)
}

// Join implements [core.Txn].
func (t *txn) Join(group string, members int) error {
	err := t.groups.Admit(t.counted(), group, members)
	if t.rows.err != nil {
		return t.breaks(t.rows.err)
	}
	return err
}

// finishGroups updates the counts of the groups whose members moved. It stores the callbacks that are due, unless
// there is a job with the same ID.
func (t *txn) finishGroups() error {
	if !t.groups.Any() {
		return nil
	}
	var due []*pawl.Envelope
	err := t.groups.Flush(t.counted(), t.Now, func(e *pawl.Envelope) { due = append(due, e) }, func(damage error) {
		t.q.opts.Logger.Error("members of a group are not counted", "error", damage.Error())
	})
	if t.rows.err != nil {
		return t.rows.err
	}
	if err != nil || len(due) == 0 {
		return err
	}
	var n needs
	for _, e := range due {
		n.ids, n.named = append(n.ids, e.ID), append(n.named, e.ID)
	}
	if err := t.read(&n); err != nil {
		return err
	}
	for _, e := range due {
		if t.Get(e.ID) == nil {
			t.Store(e, false)
		}
	}
	return nil
}
