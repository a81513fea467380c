package pawl

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Kind ties a name of jobs to the type of their arguments and to their
// defaults, so that code that enqueues and code that handles them cannot
// disagree. Make one with [Define], once, usually as a package variable.
type Kind[T any] struct {
	name     string
	defaults draft
	kindSettings
}

// kindSettings is what options set on a kind and cannot set on a job.
type kindSettings struct {
	aliases       []string // former names
	unknownFields bool     // fields that the type lacks are skipped
	needs         []string // besides a worker
}

// Define makes the kind called name. Options given here are the defaults of its jobs.
// The first use of the kind returns an [*InvalidError] for a bad name, option, or type.
//
// Arguments travel as MessagePack. The exported fields of a struct travel, each by the
// name in its msgpack tag, or else in its json tag, or else by its own name. A struct
// that has fields but no exported one is refused.
//
// A stored job must fit the type that its worker has. A field that the job lacks is
// zero. A job whose arguments have a field that the type lacks, or a value that its
// field cannot hold, does not run: it becomes dead with [ReasonPayload], no attempt is
// counted, and it can be retried under a build that reads it. So add a field at any
// time; to rename one, let the new field read the old name as well:
//
//	Address string `msgpack:"Address,alias:To"`
//
// To remove a field, see [AllowUnknownFields]; to rename the kind, see [Alias]. A type
// with a decoder of its own, or with a codec from msgpack.Register, must check what it
// reads itself. Register codecs before the first use of a kind.
func Define[T any](name string, opts ...Option) *Kind[T] {
	k := &Kind[T]{name: name}
	d := draft{env: Envelope{Kind: name, MaxRetries: DefaultMaxRetries}, kind: &k.kindSettings}
	d.apply(opts)
	if d.err == nil {
		d.err = d.env.validate()
	}
	d.kind = nil
	k.defaults = d
	return k
}

// Name is the name of the kind.
func (k *Kind[T]) Name() string { return k.name }

// Aliases returns the former names of the kind; see [Alias].
func (k *Kind[T]) Aliases() []string { return slices.Clone(k.aliases) }

// Needs returns what the jobs of the kind need; see [Needs].
func (k *Kind[T]) Needs() []string { return slices.Clone(k.needs) }

// Policy is the kind's policy, nil if it has none. It is not stored with a job. A worker
// reads it from the kind, so a new build also changes it for stored jobs.
func (k *Kind[T]) Policy() (Policy, error) {
	return k.defaults.policy, k.check()
}

// check returns the error of the definition. It looks at the type on the first use and not in
// Define, since an init function may call msgpack.Register in between.
func (k *Kind[T]) check() error {
	if k.defaults.err != nil {
		return k.defaults.err
	}
	return checkArguments(reflect.TypeFor[T]())
}

// Enqueue stores one job and returns its ID when it is durable. For errors see
// [Enqueuer]; arguments that cannot be encoded give [ErrPayloadEncoding]. With
// [ErrUnknownOutcome] the ID comes too, so that the job can be looked up.
//
// Enqueue does not store a job whose unique key is taken, unless [OnConflict] says
// otherwise: it returns the ID of the job that has the key, and Existing is true. It
// returns these with [ErrOwnJob] when ctx is that of the handler that runs this very job.
func (k *Kind[T]) Enqueue(ctx context.Context, q Enqueuer, args T, opts ...Option) (Enqueued, error) {
	e, err := k.Envelope(args, opts...)
	if err != nil {
		return Enqueued{}, err
	}
	return k.store(ctx, q, e)
}

// store enqueues a job of the kind.
func (k *Kind[T]) store(ctx context.Context, q Enqueuer, e *Envelope) (Enqueued, error) {
	var done Enqueued
	all, err := q.Enqueue(ctx, e)
	if len(all) > 0 {
		done = all[0]
	}
	if err == nil && done.Existing && runBy(ctx, done.ID) {
		err = fmt.Errorf("job %s: %w %q; nothing was stored: return Snooze to run the job again, or leave Leased out of the states of Unique",
			done.ID, ErrOwnJob, e.UniqueKey)
	}
	if err != nil {
		err = fmt.Errorf("enqueue %s: %w", k.name, err)
	}
	return done, err
}

// Envelope prepares a job without storing it, for a batch that one
// [Enqueuer].Enqueue stores whole.
func (k *Kind[T]) Envelope(args T, opts ...Option) (*Envelope, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	d := k.defaults
	d.policy = nil // a worker reads the kind's own policy
	d.env.Headers = maps.Clone(d.env.Headers)
	d.apply(opts)
	if d.err != nil {
		return nil, d.err
	}
	if d.policy != nil {
		s, ok := d.policy.(Strategy)
		if !ok {
			return nil, invalid("policy", "%T cannot be stored in a job; use a Strategy, or give it to Define or to the worker", d.policy)
		}
		d.env.Policy = &s
	}
	if err := d.env.validate(); err != nil {
		return nil, err
	}
	payload, err := encodePayload(args)
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", k.name, err)
	}
	d.env.Payload = payload
	return &d.env, nil
}

// Job returns the job in e with its arguments decoded. Bytes that are not
// arguments of this kind give [ErrPayloadEncoding].
func (k *Kind[T]) Job(e *Envelope) (*Job[T], error) {
	both := &struct {
		job Job[T]
		own Envelope // a copy, so that a handler that changes it does not change what the worker decides
	}{Job[T]{Attempt: e.Attempt(), Last: e.LastAttempt()}, *e}
	j := &both.job
	j.Envelope = &both.own
	if err := decodePayload(e.Payload, &j.Args, k.unknownFields); err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", k.name, err)
	}
	return j, nil
}

// Job is what a handler gets: one attempt of one job.
type Job[T any] struct {
	*Envelope      // to read; changing it changes nothing in the queue
	Args      T    // the arguments given to Enqueue
	Attempt   int  // the number of this attempt, from 1; Attempts counts those before
	Last      bool // a failure of this attempt leaves no retry

	// Lease is the lease that the worker holds, for a queue's AckTx. Do not change it. It
	// is nil in a job that did not come from a worker.
	Lease *Lease
}
