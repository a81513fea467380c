package postgres

import (
	"cmp"

	"github.com/jackc/pgx/v5"
)

// manyEntries is how many entries of the index of ready jobs a fetch may read before there are marks.
const manyEntries = 10_000

// marks are the last jobs that this process has leased, by their lanes. The index keeps entries of removed jobs
// until the server may remove their rows, and a long transaction prevents that. If a fetch has read many
// entries, later fetches begin behind the mark of each lane, and do not read these entries again. The marks are
// removed when this process puts a job before one of them, and at each look for changes by other processes.
type marks map[lane]position

// position is the position of a job in its lane.
type position struct {
	prio       int16
	since, seq int64
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.prio, q.prio), cmp.Compare(p.since, q.since), cmp.Compare(p.seq, q.seq))
}

// pass moves the marks past jobs that were leased.
func (m marks) pass(leased []*candidate) {
	for _, c := range leased {
		p := position{c.prio, c.since, c.seq}
		if last, ok := m[c.of()]; m != nil && (!ok || p.compare(last) > 0) {
			m[c.of()] = p
		}
	}
}

// precede removes marks that a newly ready job may precede. A new job is the last of its priority, unless a
// clock was set.
func (m marks) precede(j *job) {
	_, since := j.since()
	for l, last := range m {
		if j.stored || (position{j.prio(), since, last.seq}).compare(last) < 0 {
			delete(m, l)
		}
	}
}

// columns returns the marks as parameters.
func (m marks) columns() (lines []int32, lanes, prios []int16, since, seqs []int64) {
	for l, p := range m {
		lines, lanes = append(lines, l.line), append(lanes, l.lane)
		prios, since, seqs = append(prios, p.prio), append(since, p.since), append(seqs, p.seq)
	}
	return lines, lanes, prios, since, seqs
}

// countEntries finds out with the next statement how many entries the fetches of the transaction have read, and
// makes the process use marks if there were many. Without polls there are no marks, since nothing would remove
// them.
func (t *txn) countEntries() {
	t.write(sqlEntries).QueryRow(func(row pgx.Row) error {
		var n int64 // entries read by this session since it last reported its statistics
		if err := row.Scan(&n); err != nil {
			return err
		}
		read := n - t.q.entries
		if read < 0 {
			read = n
		}
		t.q.entries = n
		if t.q.marks == nil && read >= manyEntries && t.q.opts.Poll != NoPoll {
			t.q.marks = make(marks)
		}
		return nil
	})
}
