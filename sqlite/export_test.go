package sqlite

import (
	"context"
	"database/sql/driver"
)

// Ask returns the last column of the rows of a statement on the connection of the scheduler.
func (q *Queue) Ask(ctx context.Context, statement string) ([]driver.Value, error) {
	op := &ask{statement: statement}
	err := q.submit(ctx, op)
	return op.values, err
}

type ask struct {
	statement string
	values    []driver.Value
}

func (op *ask) apply(t *txn) error {
	t.query(op.statement, func(v []driver.Value) error {
		op.values = append(op.values, v[len(v)-1])
		return nil
	})
	return nil
}

// HotStatements are what each job costs.
var HotStatements = []string{sqlPeek, sqlClaim, sqlJobByID, sqlJobBySeq, sqlHolder, sqlPromote, sqlExpired, sqlRetained}
