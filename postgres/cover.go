package postgres

import (
	"bytes"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl/driver"
)

// errAlone says that a mutation touches rows that it did not declare. The group has to run again
// while no other process carries out mutations.
var errAlone = errors.New("the mutation did not declare what it touches")

// cover is what the mutations of a transaction may touch. If the transaction is alone, they may
// touch everything. Otherwise a mutation may touch what it has declared. Locks on the rows of its
// owners exclude mutations of other processes that touch the same rows.
type cover struct {
	alone bool
	needs *driver.Needs // what the current mutation has declared
	bare  []guard       // missing rows, among its owners and rows, that it relies on
	wrote bool          // it wrote a row
}

// guard is a row whose lock covers other rows, or the row itself.
type guard struct {
	table *tableRows
	key   string
}

// covers returns an error if the current mutation has not declared a key, or a prefix of keys.
func (rs *rows) covers(t *driver.Table, key []byte, exact bool) error {
	c := &rs.cover
	if rs.view || c.alone || rs.err != nil {
		return rs.err
	}
	if exact {
		for _, r := range c.needs.Rows {
			if r.Table == t && bytes.Equal(r.Key, key) {
				return rs.relies(r)
			}
		}
	}
	for _, r := range c.needs.Owners {
		if !t.IsIndex() && r.Table.Space() == t.Space() && bytes.HasPrefix(key, r.Key) {
			return rs.relies(r)
		}
	}
	return rs.failed(errAlone)
}

// writes is covers for a row to write. No reader of an index runs at the same time as the
// mutation.
func (rs *rows) writes(t *driver.Table, key []byte) error {
	if t.IsIndex() {
		return rs.err
	}
	return rs.covers(t, key, true)
}

// relies records a row that should be locked and cannot be, because it does not exist.
func (rs *rows) relies(r driver.RowKey) error {
	tr, err := rs.of(r.Table)
	if err != nil {
		return err
	}
	if known, ok := tr.known(string(r.Key)); ok && known != nil && (known.value != nil || known.found) {
		return nil // it stays locked after the transaction has removed it
	}
	rs.cover.bare = append(rs.cover.bare, guard{tr, string(r.Key)})
	return nil
}

// begin prepares for a mutation.
func (rs *rows) begin(n *driver.Needs) {
	rs.cover.needs, rs.cover.bare, rs.cover.wrote = n, rs.cover.bare[:0], false
}

// end returns an error if a mutation that has changed something relies on a missing row. There is
// no error if the mutation has stored that row, since then no other process can store it, too.
func (rs *rows) end(changed bool) error {
	if !changed && !rs.cover.wrote {
		return nil
	}
	for _, g := range rs.cover.bare {
		if r := g.table.rows[g.key]; r == nil || r.value == nil {
			return rs.failed(errAlone)
		}
	}
	return nil
}

// prepare locks and reads what mutations have declared, in one round trip.
func (rs *rows) prepare(all []*driver.Needs) error {
	var batch pgx.Batch
	if rs.foresee(&batch, all); rs.err != nil {
		return rs.err
	}
	if err := rs.tx.SendBatch(rs.ctx, &batch).Close(); err != nil {
		return rs.failed(err)
	}
	return rs.err
}

// foresee adds the statements to a batch that lock and read what mutations have declared.
func (rs *rows) foresee(batch *pgx.Batch, all []*driver.Needs) {
	rs.lock(batch, all)
	rs.prefetch(batch, all)
}

// lock adds the statements that lock rows to a batch. It comes first, so that later statements
// read what the previous owners of the locks left.
func (rs *rows) lock(batch *pgx.Batch, all []*driver.Needs) {
	if rs.cover.alone {
		batch.Queue(rs.q.sql(sqlLockAlone))
		return
	}
	batch.Queue(rs.q.sql(sqlLockTogether))
	var tables []int32
	var keys [][]byte
	byID := make(map[int32]*tableRows)
	seen := make(map[guard]bool)
	for _, n := range all {
		for _, list := range [...][]driver.RowKey{n.Owners, n.Rows} {
			for _, r := range list {
				tr, err := rs.of(r.Table)
				g := guard{tr, string(r.Key)}
				if err != nil || tr.id == 0 || seen[g] {
					continue
				}
				seen[g], byID[tr.id] = true, tr
				tables, keys = append(tables, tr.id), append(keys, r.Key)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	batch.Queue(rs.q.sql(sqlLockRows), tables, keys).Query(func(found pgx.Rows) error {
		var id int32
		var key, value []byte
		_, err := pgx.ForEachRow(found, []any{&id, &key, &value}, func() error {
			byID[id].learn(string(key), value)
			return nil
		})
		for g := range seen {
			g.table.learn(g.key, nil) // missing, unless it was found
		}
		return err
	})
}

// prefetch adds the statement that reads the declared spans to a batch.
func (rs *rows) prefetch(batch *pgx.Batch, all []*driver.Needs) {
	var tables []int32
	var spans []span
	var firsts, lasts [][]byte
	var most []int64
	for _, n := range all {
		for _, s := range n.Spans {
			tr, err := rs.of(s.Table)
			if err != nil || tr.id == 0 {
				continue
			}
			from, to := limits(s.Span)
			limit := s.Limit
			if limit == 0 {
				limit = mostPortion
			}
			spans = append(spans, span{tr, from, to, limit, 0, ""})
			tables, firsts, lasts = append(tables, tr.id), append(firsts, []byte(from)), append(lasts, to.end())
			most = append(most, int64(limit))
		}
	}
	if len(spans) == 0 {
		return
	}
	batch.Queue(rs.q.sql(sqlReadSpans), tables, firsts, lasts, most).Query(func(found pgx.Rows) error {
		var nth int64
		var key, value []byte
		_, err := pgx.ForEachRow(found, []any{&nth, &key, &value}, func() error {
			s := &spans[nth-1]
			s.table.learn(string(key), value)
			s.found++
			s.last = max(s.last, string(key))
			return nil
		})
		if err != nil {
			return err
		}
		for _, s := range spans {
			if s.found == s.limit {
				s.to = bound{key: s.last + "\x00"}
			}
			s.table.full.add(s.from, s.to)
		}
		return nil
	})
}

// ReadAhead implements [driver.Ahead].
func (rs *rows) ReadAhead(n *driver.Needs) error {
	var batch pgx.Batch
	rs.prefetch(&batch, []*driver.Needs{n})
	if batch.Len() == 0 || rs.err != nil {
		return rs.err
	}
	if err := rs.tx.SendBatch(rs.ctx, &batch).Close(); err != nil {
		return rs.failed(err)
	}
	return nil
}

// span is a declared span.
type span struct {
	table *tableRows
	from  string
	to    bound
	limit int
	found int
	last  string // the last key that was found
}
