package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// arrays are the columns of new jobs. pgx encodes a FlatArray faster than a slice. Extra columns end with the last job
// that has a value, since unnest pads them with NULL.
type arrays struct {
	ids                  pgtype.FlatArray[pgtype.UUID]
	seqs, since          []int64
	lines                []int32
	places, lanes, prios []int16
	records, payloads    pgtype.FlatArray[[]byte]

	deadlines, due       pgtype.FlatArray[*int64]
	effects, keys, turns pgtype.FlatArray[[]byte]
	fair                 pgtype.FlatArray[[]byte]
	orders, costs        pgtype.FlatArray[*int16]
	holds                pgtype.FlatArray[*bool]
}

func makeArrays(n int) arrays {
	return arrays{
		ids:  make([]pgtype.UUID, 0, n),
		seqs: make([]int64, 0, n), since: make([]int64, 0, n),
		places: make([]int16, 0, n), lanes: make([]int16, 0, n), prios: make([]int16, 0, n),
		records: make([][]byte, 0, n), payloads: make([][]byte, 0, n),
	}
}

func (c *arrays) add(j *job) {
	place, since := j.since()
	n := len(c.ids)
	c.ids = append(c.ids, pgtype.UUID{Bytes: j.ID, Valid: true})
	c.seqs, c.since = append(c.seqs, int64(j.Seq)), append(c.since, since)
	c.places, c.lanes = append(c.places, place), append(c.lanes, j.lane())
	c.prios = append(c.prios, j.prio())
	c.records = append(c.records, driver.AppendRecord(nil, &j.Envelope, len(j.Payload)))
	c.payloads = append(c.payloads, orEmpty(j.Payload))

	if deadline := j.deadline(); deadline != nil {
		c.deadlines = append(padded(c.deadlines, n), deadline)
	}
	if name := core.EffectName(&j.Envelope); name != "" {
		c.effects = append(padded(c.effects, n), []byte(name))
	}
	if j.Key != "" {
		c.keys = append(padded(c.keys, n), []byte(j.Key))
	}
	if turn, order, holds := j.turnColumns(); turn != nil {
		c.turns, c.orders, c.holds = append(padded(c.turns, n), turn), append(padded(c.orders, n), order), append(padded(c.holds, n), holds)
	}
	if j.Cost > 1 {
		cost := int16(j.Cost)
		c.costs = append(padded(c.costs, n), &cost)
	}
	if fair := j.fairColumn(); fair != nil {
		c.fair = append(padded(c.fair, n), fair)
	}
	if due := j.dueColumn(); due != nil {
		c.due = append(padded(c.due, n), due)
	}
}

// padded returns a list of n elements that begins with list, and ends with zero values.
func padded[S ~[]T, T any](list S, n int) S { return append(list, make(S, n-len(list))...) }

// orEmpty returns b, which is not NULL.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
