package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/account"
)

// The queues that run the jobs of a key in order; no queue of the oracle has their names. In the second one, keys take
// turns, too. The jobs of a key come from one client, which enqueues them by their IDs. Each attempt notes its turn
// when it begins, and some do when they end.
const (
	InOrder     = "in-order"
	InOrderFair = "in-order-fair"
)

// inOrder are these queues.
var inOrder = []string{InOrder, InOrderFair}

// How many jobs in order a client has stored and not settled, at most, and how many keys these have.
const (
	aheadInOrder = 60
	keysInOrder  = 4
)

// aheadOn counts the jobs of a queue that the client has stored and not settled.
func (u *User) aheadOn(queue string) *atomic.Int64 {
	if slices.Contains(inOrder, queue) {
		return &u.inOrder
	}
	return &u.ahead
}

// jobInOrder makes the job of an ID with another queue and key.
func jobInOrder(id pawl.ID, queue, key string) *pawl.Envelope {
	e := oracle.JobOf(id)
	e.Queue, e.Key, e.Delay = queue, key, 0
	return e
}

// sameJob requires that a job is what its ID says.
func sameJob(e *pawl.Envelope) error {
	if slices.Contains(inOrder, e.Queue) {
		same, given := *e, oracle.JobOf(e.ID)
		same.Queue, same.Key = given.Queue, given.Key
		e = &same
	}
	return oracle.SameJob(e)
}

// produceInOrder stores jobs whose keys are the client's own. After a call without a certain answer it begins other keys,
// as that call may take effect later.
func (u *User) produceInOrder(ctx context.Context, r *rand.Rand) {
	keys := r.Uint64()
	for ctx.Err() == nil {
		if u.inOrder.Load() > aheadInOrder {
			pause(ctx)
			continue
		}
		jobs, ids := make([]*pawl.Envelope, 1+r.IntN(12)), []any(nil)
		for i := range jobs {
			id := pawl.NewID(time.Now())
			ids = append(ids, id)
			n := r.IntN(keysInOrder)
			jobs[i] = jobInOrder(id, inOrder[n%len(inOrder)], fmt.Sprint(keys, "-", n))
		}
		if u.Fault == Mix {
			slices.Reverse(jobs)
		}
		store := u.enqueue
		if r.IntN(2) == 0 {
			store = u.enqueueTx
		}
		if store(r, jobs, ids) == account.Done {
			u.inOrder.Add(int64(len(jobs)))
			continue
		}
		keys = r.Uint64()
		pause(ctx)
	}
}

// enqueueTx stores jobs in a transaction of the app.
func (u *User) enqueueTx(_ *rand.Rand, jobs []*pawl.Envelope, ids []any) account.Outcome {
	number := u.next()
	u.emit(append([]any{"begin", "enqueue", number}, ids...)...)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := u.Queue.Update(ctx, func(tx postgres.Tx) error {
		_, err := u.Queue.EnqueueTx(ctx, tx, jobs...)
		return err
	})
	outcome := account.Refused // whatever else the error is, nothing happened
	switch {
	case err == nil:
		outcome = account.Done
	case errors.Is(err, pawl.ErrUnknownOutcome):
		outcome = account.Unknown
	}
	u.emit("end", number, outcome)
	return outcome
}

// consumeInOrder fetches and settles jobs until ctx ends. It seldom waits for jobs: such a fetch would lock the limits
// in most transactions of the client, and those of all clients would take turns.
func (u *User) consumeInOrder(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		wait := pawl.WaitNot
		if r.IntN(8) == 0 {
			wait = pawl.WaitForJob
		}
		if leases, err := u.Fetch(ctx, inOrder, 1+r.IntN(20), wait); err == nil {
			u.settleInOrder(r, leases)
		}
		pause(ctx)
	}
}

// settleInOrder notes that the turns of jobs have begun, and ends them as others.
func (u *User) settleInOrder(r *rand.Rand, leases []*held) {
	var rest []*held
	for _, l := range leases {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = u.Queue.Update(ctx, func(tx postgres.Tx) error { return u.noteTurn(ctx, tx, l) }) // if it fails, one note is missing
		cancel()
		if r.IntN(4) == 0 {
			u.book(l)
		} else {
			rest = append(rest, l)
		}
	}
	u.settle(r, rest)
}

// noteTurns notes that the jobs in order among these have their turns.
func (u *User) noteTurns(ctx context.Context, leases []*held) {
	_ = u.Queue.Update(ctx, func(tx postgres.Tx) error { // if it fails, these notes are missing
		for _, l := range leases {
			if !slices.Contains(inOrder, l.Queue) {
				continue
			}
			if err := u.noteTurn(ctx, tx, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteTurn notes that a job has its turn, unless its lease has ended. The lock on the job keeps the next turn from
// beginning before the commit.
func (u *User) noteTurn(ctx context.Context, tx postgres.Tx, l *held) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %[1]s.noted (key, id) SELECT $1, id FROM %[1]s.job WHERE id = $2 AND token = $3 FOR SHARE", u.Schema),
		l.Key, l.ID.String(), int64(l.Token))
	return err
}
