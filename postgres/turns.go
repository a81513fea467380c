package postgres

import (
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
)

// In a queue that runs the jobs of a key in order, a ready job is at the place placeTurn, where no fetch looks, until
// it has its turn. The head of a key is the job that holds it, or else the job that has its turn. A fetch chooses the
// heads, since it has locked the limits of its queues. Any other transaction that changes a job that may be a head,
// or may precede one, adds a row to table turn. That row is new, so no other transaction waits for it. The next fetch
// takes the rows of its queues from table turn, and looks only at their keys. See docs/internals/postgres.md.

const (
	// sqlOrders reads which queues run the jobs of a key in order.
	sqlOrders = `SELECT queue, in_order FROM pawl.limits WHERE queue = ANY($1) AND in_order > 0`

	sqlAddTurns = `INSERT INTO pawl.turn (name) SELECT * FROM unnest($1::bytea[])`

	// sqlTakeTurns takes up to $2 rows of each of the queues $1.
	sqlTakeTurns = `DELETE FROM pawl.turn WHERE (name, n) IN (
	SELECT t.name, t.n FROM unnest($1::bytea[]) AS q(name), LATERAL (
		SELECT name, n FROM pawl.turn WHERE name >= q.name || '\x00'::bytea AND name < q.name || '\x01'::bytea
		ORDER BY name, n LIMIT $2) t)
RETURNING name`

	// sqlAdopt makes jobs at place 0 follow an order that was declared while they were enqueued, and that they
	// therefore lack. It does the same for late jobs, which get their places later.
	sqlAdopt = `UPDATE pawl.job j SET turn = t.turn, key_order = t.key_order,
	holds = CASE WHEN t.turn IS NOT NULL THEN j.holds END, place = CASE WHEN t.turn IS NOT NULL AND j.holds IS NULL THEN -2 ELSE 0 END
FROM unnest($1::uuid[], $2::bytea[], $3::int2[]) AS t(id, turn, key_order) WHERE j.id = t.id`

	// sqlReorder makes the jobs of a queue follow another order. If several jobs of a key are leased, the first one
	// holds the key.
	sqlReorder = `WITH jobs AS (
	SELECT j.id, j.place, COALESCE(j.due, j.since) AS due, j.seq, j.token, q.name || '\x00'::bytea || j.key AS turn,
		j.place <> 3 AND COALESCE(j.holds, j.token IS NOT NULL) OR j.place = 3 AND j.holds IS TRUE AND $2::int2 = 2 AS holds
	FROM pawl.job j JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue
	WHERE q.name = $1 AND j.key IS NOT NULL AND j.place <> 4),
heads AS (SELECT DISTINCT ON (turn) id, turn FROM jobs WHERE holds ORDER BY turn, token IS NULL, due, seq),
changed AS (
	UPDATE pawl.job j SET turn = CASE WHEN $2::int2 > 0 THEN n.turn END, key_order = NULLIF($2::int2, 0),
		holds = CASE WHEN $2::int2 > 0 AND h.id IS NOT NULL THEN true END,
		place = CASE WHEN j.place NOT IN (-2, 0) OR j.token IS NOT NULL THEN j.place WHEN $2::int2 > 0 AND h.id IS NULL THEN -2 ELSE 0 END
	FROM jobs n LEFT JOIN heads h ON h.id = n.id WHERE j.id = n.id)
INSERT INTO pawl.turn (name) SELECT DISTINCT turn FROM jobs WHERE $2::int2 > 0`

	// sqlEndTurns releases the jobs of keys that wait for turns in queues without an order.
	sqlEndTurns = `UPDATE pawl.job SET turn = NULL, key_order = NULL, place = 0 WHERE turn = ANY($1) AND place = -2`
)

// turnName returns the name of a key whose jobs run in order. No name of a queue has a zero byte.
func turnName(queue, key string) string { return queue + "\x00" + key }

// inTurn sets what turnColumn says about a stored job.
func (j *job) inTurn(column []byte) {
	j.HoldsKey = false
	if n := len(column) - 1; n > 0 {
		j.turn, j.order, j.HoldsKey = string(column[:n]), pawl.KeyOrder(column[n]/2), column[n]%2 == 1
	}
}

// turnColumns returns the columns of the turn of a job.
func (j *job) turnColumns() (turn []byte, order *int16, holds *bool) {
	if j.turn == "" {
		return nil, nil, nil
	}
	number, held := int16(j.order), true
	if j.HoldsKey {
		holds = &held
	}
	return []byte(j.turn), &number, holds
}

// leaveTurn ends the hold of a done or dead job on its key, unless the job is dead and its order keeps the key held.
func (j *job) leaveTurn() {
	if j.stored && !(j.State == pawl.Dead && j.order == pawl.OrderHold) {
		j.HoldsKey = false
	}
}

// follow makes stored jobs that are about to be written follow the orders of their queues, if they lack these.
func (t *txn) follow(jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	var ids []pawl.ID
	var names [][]byte
	var orders pgtype.FlatArray[*int16]
	for _, j := range jobs {
		j.turn, j.order = turnName(j.Queue, j.Key), t.orders[j.Queue]
		name, order, _ := j.turnColumns()
		ids, names, orders = append(ids, j.ID), append(names, name), append(orders, order)
	}
	t.write(sqlAdopt, uuids(ids), names, orders)
}

// turns is what a transaction knows about jobs in order.
type turns struct {
	orders     map[string]pawl.KeyOrder // orders of the queues of new jobs; nil until they are read
	noted      map[string]bool          // keys whose first job may have changed, by name
	turnsNoted int                      // how often it has recorded keys
	kept       map[keyOfQueue]bool      // keys that wait for a later transaction, because another session has locked their first job
}

// orderNew makes new jobs with keys wait for their turn, in the queues with an order. If the order of a queue has
// changed since it was read, the next fetch finds the jobs.
func (t *txn) orderNew(fresh []*job) error {
	var unknown []string
	for _, j := range fresh {
		if _, known := t.orders[j.Queue]; !known && j.Key != "" {
			unknown = append(unknown, j.Queue)
		}
	}
	if len(unknown) > 0 {
		t.readOrders(unknown)
		if err := t.tx.send(t.ctx); err != nil {
			return err
		}
	}
	for _, j := range fresh {
		order := t.orders[j.Queue]
		if j.Key == "" || order == pawl.OrderNone || j.State == pawl.Completed {
			j.HoldsKey = false
			continue
		}
		j.turn, j.order = turnName(j.Queue, j.Key), order
		j.HoldsKey = j.HoldsKey && (j.State != pawl.Dead || order == pawl.OrderHold)
	}
	return nil
}

// readOrders adds a statement to the pipe that reads which queues of new jobs with keys have an order.
func (t *txn) readOrders(queues []string) {
	if len(queues) == 0 {
		return
	}
	if t.orders == nil {
		t.orders = make(map[string]pawl.KeyOrder)
	}
	for _, name := range queues {
		t.orders[name] = pawl.OrderNone
	}
	t.write(sqlOrders, bytesOf(queues)).Query(func(rows pgx.Rows) error {
		var name []byte
		var order int16
		_, err := pgx.ForEachRow(rows, []any{&name, &order}, func() error {
			t.orders[string(name)] = pawl.KeyOrder(order)
			return nil
		})
		return err
	})
}

// noteTurn records that the first job of the key of a job may have changed.
func (t *txn) noteTurn(j *job) {
	if j.turn == "" {
		return
	}
	if t.noted == nil {
		t.noted = make(map[string]bool)
	}
	t.noted[j.turn] = true
	t.news.ready(j.Queue)
	t.stir()
}

// writeTurns stores the keys whose first job may have changed. It omits the key of a job that still holds it.
func (t *txn) writeTurns(jobs []*job) {
	for _, j := range jobs {
		if isHead := j.stored && (j.HoldsKey || j.State == pawl.Leased); j.gone && j.stored || !j.gone && !isHead {
			t.noteTurn(j)
		}
	}
	if len(t.noted) > 0 {
		t.write(sqlAddTurns, bytesOf(slices.Sorted(maps.Keys(t.noted))))
		clear(t.noted)
		t.turnsNoted++
	}
}

// takenTurns are rows of table turn that a transaction has taken.
type takenTurns struct {
	names map[string]bool
	rows  int
	full  bool // there may be more, since the last statement reached its limit
}

func newTakenTurns() *takenTurns { return &takenTurns{names: make(map[string]bool)} }

// takeTurns adds a statement to the pipe that takes more rows of table turn.
func (t *txn) takeTurns(queues [][]byte, taken *takenTurns) {
	t.write(sqlTakeTurns, queues, portion).Query(func(rows pgx.Rows) error {
		var name []byte
		before := taken.rows
		_, err := pgx.ForEachRow(rows, []any{&name}, func() error {
			taken.names[string(name)] = true
			taken.rows++
			return nil
		})
		taken.full = taken.rows-before >= portion
		return err
	})
}

// giveTurns chooses the heads of the keys that were taken, and takes more rows until it reaches its limit. More says
// that there may be more keys than one transaction can handle. Done says that it has finished some keys, so that the
// next transaction sees others.
func (t *txn) giveTurns(taken *takenTurns, queues [][]byte) (more, done bool, err error) {
	for n := 1; taken.full && n < portions; n++ {
		t.takeTurns(queues, taken)
		if err := t.tx.send(t.ctx); err != nil {
			return false, false, err
		}
	}
	var ordered, ended []string
	for _, name := range slices.Sorted(maps.Keys(taken.names)) {
		switch of := queueOfTurn(name); {
		case t.kept[of]: // its row was written again
		case t.limits[of.queue].InOrder == pawl.OrderNone:
			ended = append(ended, name)
		default:
			ordered = append(ordered, name)
		}
	}
	if len(ended) > 0 {
		t.write(sqlEndTurns, bytesOf(ended))
	}
	heldUp, err := t.elect(ordered)
	return taken.full, heldUp < taken.rows, err
}

// writeKept makes the next transaction look again at the keys that are held up. Until then, no round takes them.
func (t *txn) writeKept() {
	if len(t.kept) == 0 {
		return
	}
	var names []string
	for of := range t.kept {
		names = append(names, turnName(of.queue, of.key))
	}
	slices.Sort(names)
	t.write(sqlAddTurns, bytesOf(names))
}

func queueOfTurn(name string) keyOfQueue {
	queue, key, _ := strings.Cut(name, "\x00")
	return keyOfQueue{queue, key}
}

// looksFurther reports whether a fetch that finds no job has to look at the limits of its queues, because jobs may wait
// for their turns or for tags, or a note may say that a fetch waits for room in a pool.
func (s *selection) looksFurther() bool {
	return slices.ContainsFunc(s.f.Queues, func(name string) bool {
		return s.t.limits[name].turns || s.t.limits[name].Fair || s.t.q.noted[name]
	})
}

// adopt makes candidates follow the order of their queue if they lack it. It reports whether there were such
// candidates, so that the fetch has to look again.
func (s *selection) adopt(found map[string][]*candidate) bool {
	var ids []pawl.ID
	var names [][]byte
	var orders pgtype.FlatArray[*int16]
	for queue, list := range found {
		r := s.rooms[queue]
		if r == nil {
			continue
		}
		for _, c := range list {
			if c.key == "" || c.order == r.limits.InOrder {
				continue
			}
			j := &job{Envelope: pawl.Envelope{Queue: queue}, turn: turnName(queue, c.key), order: r.limits.InOrder}
			ids = append(ids, c.id)
			if j.order == pawl.OrderNone {
				names, orders = append(names, nil), append(orders, nil)
				continue
			}
			name, order, _ := j.turnColumns()
			names, orders = append(names, name), append(orders, order)
			s.t.noteTurn(j)
		}
	}
	if len(ids) == 0 {
		return false
	}
	s.t.write(sqlAdopt, uuids(ids), names, orders)
	s.t.writeTurns(nil)
	return true
}
