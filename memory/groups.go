package memory

import "github.com/gopawl/pawl"

// finishGroups stores the counts of the groups whose members moved, and the callbacks that are due.
func (q *Queue) finishGroups() {
	if !q.groups.Any() {
		return
	}
	rs := q.snapshot()
	var due []*pawl.Envelope
	err := q.groups.Flush(rs, q.moves.Now, func(e *pawl.Envelope) { due = append(due, e) }, func(error) {})
	if err != nil {
		panic(err) // rows in memory are never damaged
	}
	q.tables = rs.tables
	for _, e := range due {
		if q.jobs[e.ID] != nil {
			continue
		}
		q.moves.Store(e, false)
	}
}
