package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
)

// lines are the numbers of lines that are known to exist, by the names of lines. A line is never
// removed.
type lines struct{ sync.Map }

// lineName returns the name of the line of a job. No name of a queue or a kind has a zero byte.
func lineName(e *pawl.Envelope) string { return e.Queue + "\x00" + e.Kind }

const sqlLines = `SELECT q.name, l.kind, l.id FROM unnest($1::bytea[], $2::bytea[]) AS n(name, kind)
JOIN pawl.queue q USING (name) JOIN pawl.line l ON l.queue = q.id AND l.kind = n.kind`

// linesOf returns the numbers of the lines of new jobs. It makes the lines that are missing.
func (t *txn) linesOf(jobs []*job) ([]int32, error) {
	numbers := make([]int32, len(jobs))
	var missing []*job
	for i, j := range jobs {
		if i > 0 && numbers[i-1] != 0 && j.Queue == jobs[i-1].Queue && j.Kind == jobs[i-1].Kind {
			numbers[i] = numbers[i-1]
		} else if number, known := t.q.lines.Load(lineName(&j.Envelope)); known {
			numbers[i] = number.(int32)
		} else {
			missing = append(missing, j)
		}
	}
	if len(missing) == 0 {
		return numbers, nil
	}
	var queues, kinds [][]byte
	for _, j := range missing {
		queues, kinds = append(queues, []byte(j.Queue)), append(kinds, []byte(j.Kind))
	}
	made, err := t.makeLines(queues, kinds)
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		if numbers[i] == 0 {
			numbers[i] = made[lineName(&j.Envelope)]
		}
	}
	return numbers, nil
}

// makeLines makes missing lines, and returns the numbers of all lines. The queue knows these
// numbers once the transaction is committed.
func (t *txn) makeLines(queues, kinds [][]byte) (map[string]int32, error) {
	t.write(sqlAddQueues, queues)
	t.write(sqlAddLines, queues, kinds)
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlLines), queues, kinds)
	if err != nil {
		return nil, err
	}
	numbers := make(map[string]int32)
	var queue, kind []byte
	var number int32
	_, err = pgx.ForEachRow(rows, []any{&queue, &kind, &number}, func() error {
		numbers[string(queue)+"\x00"+string(kind)] = number
		return nil
	})
	t.after = append(t.after, func() {
		for name, number := range numbers {
			t.q.lines.Store(name, number)
		}
	})
	return numbers, err
}

// makeLines makes the lines of jobs before a transaction of the app: others would wait for lines
// made in that transaction until its end. The scheduler makes them, since the app may use all
// connections of the pool.
func (q *Queue) makeLines(ctx context.Context, jobs []*pawl.Envelope) error {
	op := new(addLines)
	for _, e := range jobs {
		e = withQueue(e)
		if _, known := q.lines.Load(lineName(e)); !known {
			op.queues, op.kinds = append(op.queues, []byte(e.Queue)), append(op.kinds, []byte(e.Kind))
		}
	}
	if len(op.queues) == 0 {
		return nil
	}
	return q.submit(ctx, op)
}

// addLines is the call of makeLines.
type addLines struct{ queues, kinds [][]byte }

func (op *addLines) needs(*needs) {}

func (op *addLines) apply(t *txn) error {
	_, err := t.makeLines(op.queues, op.kinds)
	return err
}
