package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Leases deliver messages as leases, settle them, and extend them. Finish, Renew, Discard, and Expired are required.
type Leases[M any] struct {
	Gate
	Grants[M]
	driver.Reporter

	MaxCrashes int // after which a job is poison; -1 is no limit
	MaxBody    int // bytes

	// CountsCrashes says that a lease which expires in this process counts as a crash at the broker.
	CountsCrashes bool

	// Finish ends leases at the broker, and sets the error of each that it could not end.
	Finish func(ctx context.Context, all []*Settling[M])

	// Renew renews leases at the broker. It returns an error for each: nil, [pawl.ErrLeaseLost], or why nobody knows.
	Renew func(ctx context.Context, some []*Grant[M]) []error

	// Discard puts away a message that cannot be read.
	Discard func(m M, err error)

	// Expired gives a job back whose lease has expired in this process, and not yet at the broker. It returns false if
	// the broker took the job back first.
	Expired func(g *Grant[M], e *pawl.Envelope) bool

	// Early, unless nil, gives a job back that the broker delivered before its time, and reports whether it did so.
	Early func(m M, e *pawl.Envelope) bool

	// Over, unless nil, is called once for each message that was delivered, when its lease needs no more of the broker.
	Over func(m M)
}

// Delivery is a message that a broker delivered.
type Delivery[M any] struct {
	Message M
	Body    []byte
	Seq     uint64
	Crashes int  // deliveries before this one that ended without a settlement
	Revived bool // somebody else made the job ready at the broker, so a dead one begins anew
	Length  time.Duration
}

// Deliver makes leases, which began at a time, of messages, and puts away what must not run.
func (q *Leases[M]) Deliver(ctx context.Context, began time.Time, deliveries []Delivery[M]) (leases []*pawl.Lease) {
	var abandons []pawl.Settlement
	var events []pawl.Event
	for _, d := range deliveries {
		g := &Grant[M]{Seq: d.Seq, Body: d.Body, Crashes: d.Crashes, Revived: d.Revived, Length: d.Length, Message: d.Message}
		e, _, err := g.job()
		if err != nil {
			q.Discard(d.Message, err)
			q.over(d.Message)
			continue
		}
		if q.Early != nil && q.Early(d.Message, e) {
			q.over(d.Message)
			continue
		}
		g.ID, e.Crashes = e.ID, d.Crashes
		expires := q.Hold(g, began, q.expire)
		l := &pawl.Lease{Envelope: e, Token: g.Token, Length: g.Length, Expires: expires}
		switch {
		case e.Death != nil: // its abandon was cut short
			abandons = append(abandons, l.Abandon(e.Death.Reason, nil))
			continue
		case q.MaxCrashes >= 0 && e.Crashes >= q.MaxCrashes:
			abandons = append(abandons, l.Abandon(pawl.ReasonPoison, fmt.Errorf("its lease ended %d times without a settlement", e.Crashes)))
			continue
		}
		leases = append(leases, l)
		now, own := time.Now(), *e
		own.State, own.LeasedSince, own.Payload = pawl.Leased, now, nil
		fetched := pawl.Event{Type: pawl.EventFetched, At: now, Job: &own}
		if !e.BackoffSince.IsZero() {
			fetched.Backoff = now.Sub(e.BackoffSince)
		}
		events = append(events, fetched)
	}
	if len(abandons) > 0 {
		if err := q.settle(ctx, abandons); err != nil {
			q.Logger.Error("cannot put a job away; it comes again", "error", err)
		}
	}
	q.Emit(events...)
	return leases
}

// expire ends a lease that its holder did not settle in time.
func (q *Leases[M]) expire(g *Grant[M]) {
	if q.Begin(context.Background()) != nil {
		return
	}
	defer q.End()
	defer q.over(g.Message)
	e, _, err := g.job()
	if err != nil || !q.Expired(g, e) { // it was read before
		return
	}
	if e.State, e.Payload, e.Crashes = pawl.Ready, nil, 0; q.CountsCrashes {
		e.Crashes = g.Crashes + 1
	}
	q.Emit(pawl.Event{Type: pawl.EventReaped, At: time.Now(), Job: e})
}

func (q *Leases[M]) over(m M) {
	if q.Over != nil {
		q.Over(m)
	}
}

// Settling is a settlement under way.
type Settling[M any] struct {
	*pawl.Settlement
	*Ending
	Grant *Grant[M]
	Body  []byte // of the job as it becomes; none after an ack
	Err   error

	// Kept says that the broker refused the change, so the lease goes on.
	Kept bool
}

// Settle implements [pawl.Queue].
func (q *Leases[M]) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	if err := q.Begin(ctx); err != nil {
		return err
	}
	defer q.End()
	return q.settle(ctx, settlements)
}

// settle ends leases. Each counts by itself. What was accepted does not end with its context.
func (q *Leases[M]) settle(ctx context.Context, settlements []pawl.Settlement) error {
	errs, now := make([]error, len(settlements)), time.Now()
	all := make([]*Settling[M], len(settlements))
	var some []*Settling[M]
	for i := range settlements {
		n := &Settling[M]{Settlement: &settlements[i]}
		all[i] = n
		if n.Grant = q.Take(n.Lease); n.Grant == nil {
			n.Err = pawl.ErrLeaseLost
			continue
		}
		e, history, err := n.Grant.job()
		if n.Err = err; err != nil {
			continue
		}
		end := End(n.Settlement, e, history, now)
		if n.Ending = &end; n.Outcome != pawl.OutcomeAck {
			n.Body = AppendBody(end.Job, end.History, q.MaxBody)
		}
		end.Job.Payload = nil
		some = append(some, n)
	}
	if len(some) > 0 {
		q.Finish(context.WithoutCancel(ctx), some)
	}
	for i, n := range all {
		switch {
		case n.Kept:
			q.Restore(n.Grant)
		case n.Grant != nil:
			q.over(n.Grant.Message)
		}
		if n.Err == nil {
			q.Emit(n.Event)
			continue
		}
		errs[i] = fmt.Errorf("job %s: %w", n.Lease.ID, n.Err)
	}
	return driver.SettleErrors(settlements, errs)
}

// Extend implements [pawl.Queue]. A lease of which the broker says nothing is not lost: it lasts as long as before, and
// Extend returns the error.
func (q *Leases[M]) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	if err := q.Begin(ctx); err != nil {
		return nil, err
	}
	defer q.End()
	var some []*Grant[M]
	var held []*pawl.Lease // in the order of some
	began := time.Now()
	for _, l := range leases {
		if g := q.Find(l); g != nil {
			some, held = append(some, g), append(held, l)
		}
	}
	renewed := make(map[*pawl.Lease]bool)
	if len(some) > 0 {
		for i, failure := range q.Renew(context.WithoutCancel(ctx), some) {
			switch g := some[i]; {
			case failure == nil:
				renewed[held[i]] = q.Grants.Extend(g, began)
			case errors.Is(failure, pawl.ErrLeaseLost):
				if q.Drop(g) {
					q.over(g.Message)
				}
			default:
				err = failure
			}
		}
	}
	if err != nil {
		return nil, err // what is lost comes with the next call
	}
	for _, l := range leases {
		if !renewed[l] {
			lost = append(lost, l)
		}
	}
	return lost, nil
}

// Reap implements [pawl.Queue]. The broker takes expired leases back by itself, so it returns 0.
func (q *Leases[M]) Reap(ctx context.Context) (int, error) { return 0, q.Ready(ctx) }
