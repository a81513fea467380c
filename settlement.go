package pawl

import "time"

// Outcome is how a lease ends.
type Outcome string

// The outcomes of a lease. See [Lease.Ack] and the other methods of [Lease].
const (
	OutcomeAck      Outcome = "ack"
	OutcomeNack     Outcome = "nack"
	OutcomeAbandon  Outcome = "abandon"
	OutcomeRelease  Outcome = "release"
	OutcomeSnooze   Outcome = "snooze"
	OutcomeThrottle Outcome = "throttle"
)

// Settlement is the end of one lease, for [Queue.Settle]. [Lease.Ack], [Lease.Nack],
// [Lease.Abandon], [Lease.Release], [Lease.Snooze], and [Lease.Throttle] make it.
type Settlement struct {
	Lease   *Lease
	Outcome Outcome
	Delay   time.Duration // of a nack, a snooze, or a throttle
	Rest    Rest          // of a throttle
	Reason  Reason        // of an abandon
	Cause   error         // of a nack or an abandon; nil for none
	Result  []byte        // of an ack, encoded, at most [MaxResult] bytes; nil for none
}

// Ack removes a job whose attempt succeeded, or keeps its record for its Retain. From then on its
// IdempotencyKey is done, for its IdempotencyTTL. The record has the result that [Task.SetResult]
// gave the lease.
func (l *Lease) Ack() Settlement {
	s := Settlement{Lease: l, Outcome: OutcomeAck}
	if l != nil {
		s.Result = l.result
	}
	return s
}

// Nack counts a failed attempt, keeps cause in the job's history and makes the job ready
// after delay, at once when delay is 0.
func (l *Lease) Nack(delay time.Duration, cause error) Settlement {
	return Settlement{Lease: l, Outcome: OutcomeNack, Delay: delay, Cause: cause}
}

// Abandon counts a failed attempt, keeps cause, and makes the job dead. A worker
// gives [ReasonExhausted] or [ReasonPermanent]. [ReasonSignature] and
// [ReasonPayload] count no attempt, because nothing ran.
func (l *Lease) Abandon(reason Reason, cause error) Settlement {
	return Settlement{Lease: l, Outcome: OutcomeAbandon, Reason: reason, Cause: cause}
}

// Release returns an interrupted job to its old place in the order. It counts nothing.
func (l *Lease) Release() Settlement { return Settlement{Lease: l, Outcome: OutcomeRelease} }

// Snooze makes a job ready after delay. It counts nothing. If the attempt began (l.Started), it
// did not fail, and so Attempts becomes 0: only failures in a row exhaust retries.
func (l *Lease) Snooze(delay time.Duration) Settlement {
	return Settlement{Lease: l, Outcome: OutcomeSnooze, Delay: delay}
}

// Throttle releases a job, and lets its key or its queue rest for delay: no job of it is leased until then, unless
// somebody ends the rest. A queue without [LimitKeys] refuses it. [ThisKey] gives [ErrInvalid] in a queue without
// limits per key, and for a job without a key.
func (l *Lease) Throttle(delay time.Duration, rest Rest) Settlement {
	return Settlement{Lease: l, Outcome: OutcomeThrottle, Delay: delay, Rest: rest}
}
