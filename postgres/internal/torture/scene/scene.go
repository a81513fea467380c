// Package scene sets clients to work on one schema of a server, disturbs them, lets everything come to
// its end, and compares the accounts of the clients with the database.
package scene

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/account"
	"github.com/gopawl/pawl/postgres/internal/torture/client"
)

// Acknowledged counts the jobs of all acknowledged enqueues of this process.
var Acknowledged atomic.Int64

// Scene is one schema and its clients.
type Scene struct {
	try      *harness.Try
	ctx      context.Context // ends when the user interrupts, and not when time is up: what has begun is judged
	stop     context.CancelFunc
	schema   string
	lease    time.Duration
	fault    client.Fault
	account  *account.Account
	progress chan struct{} // has an element if something was reported since the last look

	mu    sync.Mutex
	wrong []error

	clients []*process
	number  int // of clients so far
}

// process is a client.
type process struct {
	*harness.Child
	name   string
	slot   int
	killed atomic.Bool
	ended  chan struct{} // closed when all its lines are processed
}

// Config says what all clients of a scene have in common.
type Config struct {
	URL   string // of the server, as long as there is no fault
	Lease time.Duration
	Fault client.Fault
}

// New makes the schema of a try.
func New(t *harness.Try, c Config) (*Scene, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Ctx))
	context.AfterFunc(t.Ctx, func() {
		if errors.Is(t.Ctx.Err(), context.Canceled) {
			stop()
		}
	})
	s := &Scene{
		try: t, ctx: ctx, stop: stop, schema: fmt.Sprintf("try_%d", t.Seed), lease: c.Lease, fault: c.Fault,
		account: account.New(), progress: make(chan struct{}, 1),
	}
	q, err := postgres.Open(ctx, c.URL, client.Options(s.schema, s.lease, time.Minute))
	if err != nil {
		return nil, err
	}
	if err := q.Close(); err != nil {
		return nil, err
	}
	err = s.execute(c.URL, fmt.Sprintf(`CREATE TABLE %[1]s.booked (id uuid NOT NULL);
CREATE TABLE %[1]s.noted (key text NOT NULL, id uuid NOT NULL, n int8 GENERATED ALWAYS AS IDENTITY);
CREATE TABLE %[1]s.trip (run text, part text, n int8 NOT NULL, PRIMARY KEY (run, part))`, s.schema))
	return s, err
}

// execute runs statements that no fault disturbs.
func (s *Scene) execute(url, sql string) error {
	conn, err := pgx.Connect(s.ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(s.ctx, sql)
	return errors.Join(err, conn.Close(s.ctx))
}

// Start starts a client in a slot. Clients of some slots have a name there, so when a client was
// killed, its successor takes back the leases immediately.
func (s *Scene) Start(slot int, url string) error {
	s.number++
	p := &process{name: fmt.Sprint("client ", s.number), slot: slot, ended: make(chan struct{})}
	c := client.Config{
		URL: url, Schema: s.schema, Seed: s.try.Rand.Uint64(), Lease: s.lease, Timeout: 30 * time.Second, Fault: s.fault,
	}
	if slot%2 == 1 {
		c.Owner = fmt.Sprint("slot ", slot)
	}
	if s.try.Rand.IntN(2) == 0 {
		c.Timeout = 300 * time.Millisecond // some calls give up
	}
	words, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if p.Child, err = harness.Start(context.Background(), nil, client.Role, string(words)); err != nil {
		return err
	}
	s.clients = append(s.clients, p)
	go s.listen(p)
	return nil
}

// listen takes in what a client reports.
func (s *Scene) listen(p *process) {
	defer close(p.ended)
	for {
		line, err := p.Line()
		if err != nil {
			if !p.killed.Load() && (!p.ProcessState.Success() || p.Stderr() != "") {
				s.violate(fmt.Errorf("%s: %w", p.name, err))
			}
			s.account.Ended(p.name, p.killed.Load())
			return
		}
		if line == client.Up {
			continue
		}
		s.account.Hear(p.name, line)
		select {
		case s.progress <- struct{}{}:
		default:
		}
	}
}

func (s *Scene) violate(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, err)
}

// answerLimit is how long clients may take for an answer when there is no fault.
const answerLimit = 2 * time.Minute

var errStuck = errors.New("the clients are stuck")

// Await waits until clients have reported that many more answers, and then for a random time.
func (s *Scene) Await(answers int) error {
	stuck := time.NewTimer(answerLimit)
	defer stuck.Stop()
	last := s.account.Answered()
	for until := last + answers; last < until; {
		select {
		case <-s.progress:
			if now := s.account.Answered(); now > last {
				last = now
				stuck.Reset(answerLimit)
			}
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-stuck.C:
			return fmt.Errorf("%w: there is no answer in %v", errStuck, answerLimit)
		}
	}
	time.Sleep(time.Duration(s.try.Rand.IntN(30)) * time.Millisecond)
	return nil
}

// Alone waits until the server has no other client: it may still carry out what a killed process sent.
func Alone(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for others := -1; others != 0; time.Sleep(time.Millisecond) {
		const clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
		if err := conn.QueryRow(ctx, clients).Scan(&others); err != nil {
			return fmt.Errorf("%w: the server has %d other clients: %w", errStuck, others, err)
		}
	}
	return nil
}

// Context ends when the user interrupts.
func (s *Scene) Context() context.Context { return s.ctx }

// Kill kills a random client and returns its slot.
func (s *Scene) Kill() (slot int) {
	i := s.try.Rand.IntN(len(s.clients))
	p := s.clients[i]
	s.clients = slices.Delete(s.clients, i, i+1)
	p.kill()
	return p.slot
}

func (p *process) kill() {
	p.killed.Store(true)
	p.Child.Kill()
	<-p.ended
}

// End kills what still runs. It is for the end of a try, however that ends.
func (s *Scene) End() {
	for _, p := range s.clients {
		p.kill()
	}
	s.clients = nil
	s.stop()
	Acknowledged.Add(int64(s.Stored()))
}

// Stored is the number of jobs whose enqueue was acknowledged.
func (s *Scene) Stored() int { return s.account.Stored() }

// Stop lets the clients end by themselves, and waits for that.
func (s *Scene) Stop() error {
	for _, p := range s.clients {
		_ = p.In.Close()
	}
	limit := time.After(answerLimit)
	for _, p := range s.clients {
		select {
		case <-p.ended:
			p.Child.Kill()
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-limit:
			return fmt.Errorf("%w: %s did not end", errStuck, p.name)
		}
	}
	s.clients = nil
	return nil
}

// Judge stops the clients, lets all jobs and runs come to their end, and compares the accounts with the
// database. It removes the schema if all is well.
func (s *Scene) Judge(url string) error {
	if err := s.Stop(); err != nil {
		return err
	}
	if err := Alone(s.ctx, url); err != nil {
		return err
	}
	found, err := s.drain(url)
	if err != nil {
		return err
	}
	s.mu.Lock()
	wrong := s.wrong
	s.mu.Unlock()
	if err := errors.Join(append(wrong, s.account.Judge(found))...); err != nil {
		return err
	}
	return s.execute(url, "DROP SCHEMA "+s.schema+" CASCADE")
}

// drain runs what is left, and reads what is there then.
func (s *Scene) drain(url string) (f account.Found, err error) {
	ctx := s.ctx
	q, err := postgres.Open(ctx, url, client.Options(s.schema, s.lease, time.Minute))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	const name = "judge"
	u := &client.User{Queue: q, Schema: s.schema, Emit: func(line string) { s.account.Hear(name, line) }}
	for more := true; more; {
		if more, err = u.Drain(ctx, answerLimit); err != nil {
			return f, s.stuck(ctx, q, "jobs", err)
		}
	}
	s.account.Ended(name, false)
	flows, err := client.NewFlows(q, s.schema)
	if err != nil {
		return f, err
	}
	runs, cancel := context.WithTimeout(ctx, 2*answerLimit)
	defer cancel()
	if err := flows.Worker.Drain(runs, pawl.WaitFinished); err != nil {
		return f, s.stuck(ctx, q, "runs", err)
	}
	return s.read(ctx, q, flows, url)
}

// stuck is the error of a drain that did not come to its end.
func (s *Scene) stuck(ctx context.Context, q *postgres.Queue, of string, err error) error {
	stats, failed := q.Stats(ctx)
	return fmt.Errorf("%w: some %s do not end: %w; the queues have %+v (%v)", errStuck, of, err, stats.Queues, failed)
}

// read reads what is in the database.
func (s *Scene) read(ctx context.Context, q *postgres.Queue, flows *client.Flows, url string) (f account.Found, err error) {
	f = account.Found{Jobs: make(map[pawl.ID]pawl.State), Rows: make(map[pawl.ID]int), Runs: make(map[string]account.Run)}
	for j, err := range q.Jobs(ctx, pawl.Filter{Kind: "k"}) {
		if err != nil {
			return f, err
		}
		f.Jobs[j.ID] = j.State
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var id string
	var n int
	booked, err := conn.Query(ctx, "SELECT id::text, count(*) FROM "+s.schema+".booked GROUP BY id")
	if err != nil {
		return f, err
	}
	_, err = pgx.ForEachRow(booked, []any{&id, &n}, func() error {
		of, err := pawl.ParseID(id)
		f.Rows[of] = n
		return err
	})
	if err != nil {
		return f, err
	}
	if err := s.readTurns(ctx, conn, &f); err != nil {
		return f, err
	}
	if err := flows.Runs(ctx, f.Runs); err != nil {
		return f, err
	}
	trips, err := conn.Query(ctx, "SELECT run, n FROM "+s.schema+".trip")
	if err != nil {
		return f, err
	}
	_, err = pgx.ForEachRow(trips, []any{&id, &n}, func() error {
		run := f.Runs[id]
		run.Rows = append(run.Rows, n)
		f.Runs[id] = run
		return nil
	})
	if err != nil {
		return f, err
	}
	return f, flows.Engine.Check(ctx)
}

// readTurns reads the turns of the jobs in order.
func (s *Scene) readTurns(ctx context.Context, conn *pgx.Conn, f *account.Found) error {
	rows, err := conn.Query(ctx, "SELECT key, id::text FROM "+s.schema+".noted ORDER BY n")
	if err != nil {
		return err
	}
	f.Turns = make(map[string][]pawl.ID)
	var key, id string
	_, err = pgx.ForEachRow(rows, []any{&key, &id}, func() error {
		of, err := pawl.ParseID(id)
		f.Turns[key] = append(f.Turns[key], of)
		return err
	})
	return err
}
