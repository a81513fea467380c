// Package client is the process that the families over PostgreSQL disturb. It enqueues, fetches,
// settles, and runs workflows, and it reports each operation before it begins and after its answer, as
// package account describes.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/account"
)

// Role is the role of the process. Its argument is a Config in JSON.
const Role = "pg-client"

func init() { harness.Role(Role, work) }

// Config is the argument of a client.
type Config struct {
	URL     string
	Schema  string
	Owner   string // "" for a new name
	Seed    uint64
	Lease   time.Duration
	Timeout time.Duration
	Fault   Fault // that is planted, "" for none
}

// Fault is a mistake that an app could make. Tests plant it to see that a family finds it.
type Fault string

// The faults that can be planted.
const (
	Hasty  Fault = "hasty"  // it takes an enqueue for done before the commit
	Split  Fault = "split"  // it commits the effect of a job and its ack in two transactions
	Forget Fault = "forget" // it acks a job, and then forgets that it did
	Mix    Fault = "mix"    // it enqueues jobs in another order than it says
)

// Up is the first line of a client, once the queue is open.
const Up = "up"

// Options are the options of every queue on the schema of a scene.
func Options(schema string, lease, timeout time.Duration) *postgres.Options {
	return &postgres.Options{
		Schema: schema, Lease: lease, Timeout: timeout, Poll: 50 * time.Millisecond,
		MaxCrashes: postgres.NoMaxCrashes, Logger: hclog.NewNullLogger(),
		Limits: map[string]pawl.Limits{
			InOrder: {InOrder: pawl.OrderContinue}, InOrderFair: {InOrder: pawl.OrderContinue, Fair: true}, "limited": {Fair: true},
		},
	}
}

// How much a client does at a time.
const (
	producers = 4
	consumers = 4
	ahead     = 1000 // jobs that it has stored and that it has not settled, at most
)

// work is the role. It ends when its input does.
func work(args harness.Args) error {
	var c Config
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	o := Options(c.Schema, c.Lease, c.Timeout)
	o.Owner = c.Owner
	q, err := open(c.URL, o)
	if err != nil {
		return err
	}
	emit(Up)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	u := &User{Queue: q, Schema: c.Schema, Fault: c.Fault}
	var all sync.WaitGroup
	for n := range producers {
		all.Go(func() { u.produce(ctx, rand.New(rand.NewPCG(c.Seed, uint64(n)))) })
	}
	for n := range consumers {
		all.Go(func() { u.consume(ctx, rand.New(rand.NewPCG(c.Seed, uint64(100+n)))) })
	}
	all.Go(func() { u.produceInOrder(ctx, rand.New(rand.NewPCG(c.Seed, 300))) })
	all.Go(func() { u.consumeInOrder(ctx, rand.New(rand.NewPCG(c.Seed, 301))) })
	all.Go(func() { u.flows(ctx, rand.New(rand.NewPCG(c.Seed, 200))) })
	all.Wait()
	return q.Close()
}

// open waits for a server that is away.
func open(url string, o *postgres.Options) (*postgres.Queue, error) {
	for {
		q, err := postgres.Open(context.Background(), url, o)
		if err == nil || !errors.Is(err, postgres.ErrUnavailable) && !errors.Is(err, postgres.ErrReadOnly) {
			return q, err
		}
		time.Sleep(retry)
	}
}

// retry is how long to wait before the next call after one that a fault made fail.
const retry = 20 * time.Millisecond

// User uses a queue and reports what it does.
type User struct {
	Queue  *postgres.Queue
	Schema string
	Fault  Fault

	// Emit takes a line of the report. Nil stands for the output of the process.
	Emit func(line string)

	numbers atomic.Uint64 // of operations and attempts
	ahead   atomic.Int64
	inOrder atomic.Int64 // ahead, of the queues in order
}

// emit writes a line in one piece, so that a kill leaves it out or whole.
func emit(line string) { _, _ = os.Stdout.WriteString(line + "\n") }

func (u *User) emit(words ...any) {
	line := strings.TrimSuffix(fmt.Sprintln(words...), "\n")
	if u.Emit == nil {
		emit(line)
	} else {
		u.Emit(line)
	}
}

// next returns a number for an operation or an attempt.
func (u *User) next() uint64 { return u.numbers.Add(1) }

// outcome returns what an error says of a call. It reports an error that says nothing.
func (u *User) outcome(err error) account.Outcome {
	switch {
	case err == nil:
		return account.Done
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return account.Unknown
	case errors.Is(err, pawl.ErrLeaseLost):
		return account.Lost
	case errors.Is(err, postgres.ErrUnavailable), errors.Is(err, pawl.ErrNotAccepted), errors.Is(err, postgres.ErrReadOnly):
		return account.Refused
	}
	u.emit("odd", strings.ReplaceAll(err.Error(), "\n", " "))
	return account.Unknown
}

// produce stores jobs, one or several at a time.
func (u *User) produce(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		if u.ahead.Load() > ahead {
			pause(ctx)
			continue
		}
		n := 1
		switch r.IntN(8) {
		case 0, 1, 2:
			n += r.IntN(20)
		case 3:
			n += r.IntN(200)
		}
		jobs, ids := make([]*pawl.Envelope, n), make([]any, n)
		for i := range jobs {
			id := pawl.NewID(time.Now())
			jobs[i], ids[i] = oracle.JobOf(id), id
			if jobs[i].Delay = 0; r.IntN(50) == 0 {
				jobs[i].Delay = time.Duration(r.IntN(100)) * time.Millisecond
			}
		}
		if outcome := u.enqueue(r, jobs, ids); outcome != account.Done {
			pause(ctx)
		} else {
			u.ahead.Add(int64(n))
		}
	}
}

// pause waits a little, or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retry):
	}
}

// enqueue stores jobs. Some callers do not wait for long.
func (u *User) enqueue(r *rand.Rand, jobs []*pawl.Envelope, ids []any) account.Outcome {
	number := u.next()
	u.emit(append([]any{"begin", "enqueue", number}, ids...)...)
	ctx := context.Background()
	if r.IntN(20) == 0 {
		short, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(10))*time.Millisecond)
		defer cancel()
		ctx = short
	}
	if u.Fault == Hasty {
		u.emit("end", number, account.Done)
		_, _ = u.Queue.Enqueue(ctx, jobs...)
		return account.Done
	}
	_, err := u.Queue.Enqueue(ctx, jobs...)
	outcome := u.outcome(err)
	u.emit("end", number, outcome)
	return outcome
}
