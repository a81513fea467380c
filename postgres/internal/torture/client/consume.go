package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/account"
)

// held is a lease that the user has to end.
type held struct {
	*pawl.Lease
	number  uint64 // of the attempt
	verb    string // how it is to end
	unknown bool   // an earlier call may have ended it
}

// consume fetches and settles jobs until ctx ends.
func (u *User) consume(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		leases, err := u.Fetch(ctx, oracle.Queues, 1+r.IntN(100), pawl.WaitForJob)
		if err != nil {
			pause(ctx)
			continue
		}
		u.settle(r, leases)
	}
}

// Fetch fetches and reports up to most jobs.
func (u *User) Fetch(ctx context.Context, queues []string, most int, wait pawl.Wait) ([]*held, error) {
	number := u.next()
	u.emit("begin", "fetch", number, most)
	leases, err := u.Queue.Fetch(ctx, pawl.Request{Queues: queues, Max: most, Wait: wait})
	if err != nil && !errors.Is(err, pawl.ErrEmpty) {
		u.outcome(err)
	}
	words := []any{"end", number}
	if errors.Is(err, pawl.ErrUnknownOutcome) {
		words = append(words, account.Unknown)
	}
	all := make([]*held, len(leases))
	for i, l := range leases {
		all[i] = &held{Lease: l, number: u.next(), verb: account.Ack}
		words = append(words, fmt.Sprintf("%d:%s:%d:%d", all[i].number, l.ID, l.Attempts, l.Crashes))
	}
	u.emit(words...)
	for _, l := range leases {
		if err := sameJob(l.Envelope); err != nil {
			u.emit("odd", err)
		}
	}
	return all, err
}

// Drain fetches jobs and acks them. It reports whether there may be more, and fails if none comes for so
// long.
func (u *User) Drain(ctx context.Context, limit time.Duration) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	leases, err := u.Fetch(ctx, slices.Concat(oracle.Queues, inOrder), 1000, pawl.WaitFinished)
	if errors.Is(err, pawl.ErrEmpty) {
		return false, nil
	}
	u.noteTurns(ctx, leases)
	u.Settle(leases)
	return true, err
}

// settle ends leases in many ways. Some are extended before. No job fails often: whether it is retried is
// drawn once for each attempt.
func (u *User) settle(r *rand.Rand, leases []*held) {
	if r.IntN(10) == 0 {
		leases = u.extend(r, leases)
	}
	var together []*held
	for _, l := range leases {
		switch n := r.IntN(50); {
		case u.Fault == Split, n == 0:
			u.book(l)
			continue
		case n < 4:
			l.verb = account.Nack
		case n == 4:
			l.verb = account.Abandon
		case n == 5:
			l.verb = account.Release
		}
		together = append(together, l)
	}
	u.Settle(together)
}

// extend works on leases for a while, and then extends them.
func (u *User) extend(r *rand.Rand, leases []*held) (rest []*held) {
	time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
	all := make([]*pawl.Lease, len(leases))
	for i, l := range leases {
		all[i] = l.Lease
	}
	begun := time.Now()
	lost, err := u.Queue.Extend(context.Background(), all...)
	if err != nil {
		u.outcome(err)
		return leases
	}
	gone := make(map[*pawl.Lease]bool)
	for _, l := range lost {
		gone[l] = true
	}
	for _, l := range leases {
		if gone[l.Lease] {
			u.emit("lost", l.number, u.lost(l))
			u.aheadOn(l.Queue).Add(-1)
			continue
		}
		l.Expires = begun.Add(l.Length) // at least
		rest = append(rest, l)
	}
	return rest
}

// lost says whether a lease that is lost had expired.
func (u *User) lost(l *held) account.Outcome {
	if time.Now().Before(l.Expires) {
		return account.Early
	}
	return account.Lost
}

// errFailed is the error of an attempt that fails.
var errFailed = errors.New("failed")

func (l *held) settlement() pawl.Settlement {
	switch l.verb {
	case account.Nack:
		return l.Nack(0, errFailed)
	case account.Abandon:
		return l.Abandon(pawl.ReasonPermanent, errFailed)
	case account.Release:
		return l.Release()
	}
	return l.Ack()
}

// Settle ends leases together. A call that failed because of a fault, or whose outcome is unknown, is
// repeated until the answer is certain: a token settles once. A lease whose answer is uncertain for as
// long as it lasts expires.
func (u *User) Settle(leases []*held) {
	for first := true; len(leases) > 0; first = false {
		if !first {
			time.Sleep(retry)
		}
		number, words := u.next(), []any{"begin", "settle"}
		words = append(words, number)
		settlements := make([]pawl.Settlement, len(leases))
		for i, l := range leases {
			settlements[i] = l.settlement()
			words = append(words, fmt.Sprintf("%s:%d", l.verb, l.number))
		}
		u.emit(words...)
		err := u.Queue.Settle(context.Background(), settlements...)
		words = []any{"end", number}
		var rest []*held
		for _, l := range leases {
			outcome := u.outcomeOf(l, err)
			settled := outcome == account.Done || outcome == account.Lost || outcome == account.Early
			if u.Fault == Forget && outcome == account.Done && l.verb == account.Ack {
				outcome = account.Refused
			}
			words = append(words, outcome)
			if settled {
				u.aheadOn(l.Queue).Add(-1)
				continue
			}
			l.unknown = l.unknown || outcome == account.Unknown
			rest = append(rest, l)
		}
		u.emit(words...)
		leases = rest
	}
}

// outcomeOf returns what the error of a settlement says of one lease.
func (u *User) outcomeOf(l *held, err error) account.Outcome {
	var partial *pawl.SettleError
	if errors.As(err, &partial) {
		err = partial.Failed[l.Lease]
	}
	outcome := u.outcome(err)
	if outcome == account.Lost && !l.unknown {
		return u.lost(l)
	}
	return outcome
}

// book writes a row of the app and acks the job in one transaction. If that does not happen the job is
// released. If it is unknown, the job is released too, which changes nothing after the commit.
func (u *User) book(l *held) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	number := u.next()
	u.emit("begin", "settle", number, fmt.Sprintf("%s:%d", account.Book, l.number))
	insert := func(tx postgres.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+u.Schema+".booked VALUES ($1)", l.ID.String())
		if err == nil && slices.Contains(inOrder, l.Queue) {
			err = u.noteTurn(ctx, tx, l)
		}
		return err
	}
	err := u.Queue.Update(ctx, func(tx postgres.Tx) error {
		if err := insert(tx); err != nil || u.Fault == Split {
			return err
		}
		return u.Queue.AckTx(ctx, tx, l.Lease)
	})
	if err == nil && u.Fault == Split {
		err = u.Queue.Update(ctx, func(tx postgres.Tx) error { return u.Queue.AckTx(ctx, tx, l.Lease) })
	}
	outcome := account.Refused // whatever else the error is, nothing happened
	switch {
	case err == nil:
		outcome = account.Done
	case errors.Is(err, pawl.ErrUnknownOutcome):
		outcome = account.Unknown
	case errors.Is(err, pawl.ErrLeaseLost):
		outcome = u.lost(l)
	}
	u.emit("end", number, outcome)
	if outcome == account.Refused || outcome == account.Unknown {
		l.verb, l.unknown = account.Release, outcome == account.Unknown
		u.Settle([]*held{l})
		return
	}
	u.aheadOn(l.Queue).Add(-1)
}
