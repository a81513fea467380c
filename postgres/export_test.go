package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// ListStatement returns the statement that reads the keys of the first page of a list, or of a page
// after a job in the middle.
func ListStatement(q *Queue, f pawl.Filter, middle *pawl.Envelope) (string, pgx.NamedArgs) {
	p := page{q: q, filter: f, parts: driver.AllParts}
	if middle != nil {
		p.last = &key{queue: 1, since: nanos(middle.NotBefore), prio: 127, seq: int64(middle.Seq), id: uuids([]pawl.ID{middle.ID})[0]}
	}
	return q.sql(p.statement()), p.arguments(core.ListPage)
}
