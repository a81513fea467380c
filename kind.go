package pawl

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Kind ties a sort of job to the type of its arguments and to its defaults, so
// that what is enqueued and what is handled cannot differ by a typo. Make one
// with [Define], once, usually as a package variable.
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

// Define makes the kind called name. Options given here are the defaults of its
// jobs. The first use of the kind reports a bad name, option or type, as an
// [*InvalidError].
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
// with a decoder of its own, or with a codec from msgpack.Register, checks what it reads
// itself. Register codecs before the first use of a kind.
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

// Policy is the kind's policy, nil when it has none. A worker reads it, not the
// stored job, so a new build changes it for jobs that are stored already.
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
	d.policy = nil // the kind's own is read at the worker
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
		own Envelope // what the handler does to it is not what the worker decides by
	}{Job[T]{Attempt: e.Attempt(), Last: e.LastAttempt()}, *e}
	j := &both.job
	j.Envelope = &both.own
	if err := decodePayload(e.Payload, &j.Args, k.unknownFields); err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", k.name, err)
	}
	return j, nil
}

// Job is what a handler gets: one run of one job.
type Job[T any] struct {
	*Envelope      // to read; changing it changes nothing in the queue
	Args      T    // the arguments given to Enqueue
	Attempt   int  // the number of this run, 1 on the first; Attempts counts those before
	Last      bool // a failure of this run leaves no retry

	// Lease is what a worker holds the job by: for a queue's AckTx. To read as well. It is
	// nil in a job that no worker made.
	Lease *Lease
}

// draft is a job while options are applied to it.
type draft struct {
	kind   *kindSettings // nil for a job
	env    Envelope
	policy Policy
	err    error
}

func (d *draft) apply(opts []Option) {
	for _, opt := range opts {
		opt(d)
	}
}

func (d *draft) refuse(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Option sets one property of a job; a later one overrides an earlier one.
type Option func(*draft)

// AllowUnknownFields lets jobs of a kind run although their arguments have fields that
// its type lacks: these are skipped. Give it to [Define], for as long as jobs may be
// stored that have a field which was removed.
func AllowUnknownFields() Option {
	return ofKind(func(_ *draft, k *kindSettings) { k.unknownFields = true })
}

// Alias gives a kind one of its former names too, so that its worker also runs jobs that
// were stored under it. Give it to [Define]. It may be given several times.
//
// Unique and idempotency keys count per name: a job of the old name does not keep out one
// of the new name with the same key.
func Alias(old string) Option {
	return ofKind(func(d *draft, k *kindSettings) {
		if err := checkName("kind", old); err != nil {
			d.refuse(err)
		}
		if old == d.env.Kind || slices.Contains(k.aliases, old) {
			d.refuse(invalid("alias", "%q is a name of the kind already", old))
		}
		k.aliases = append(k.aliases, old)
	})
}

// Needs names what the jobs of a kind need besides a worker, such as "network". A worker takes them
// only while its gate of each name is open; see package worker. Until then they stay ready, and
// count no attempt. Give it to [Define].
func Needs(names ...string) Option {
	return ofKind(func(d *draft, k *kindSettings) {
		for _, name := range names {
			if err := checkName("need", name); err != nil {
				d.refuse(err)
			}
		}
		k.needs = append(k.needs, names...)
	})
}

// ofKind is an option that no job has.
func ofKind(set func(*draft, *kindSettings)) Option {
	return func(d *draft) {
		if d.kind == nil {
			d.refuse(invalid("option", "Alias, AllowUnknownFields, and Needs belong to a kind; give them to Define"))
			return
		}
		set(d, d.kind)
	}
}

// OnQueue puts the job on a named queue in place of [DefaultQueue].
func OnQueue(name string) Option {
	return func(d *draft) {
		if err := checkName("queue", name); err != nil {
			d.refuse(err)
		}
		d.env.Queue = name
	}
}

// MaxRetries sets how often a failed job is retried: it runs at most n+1 times.
// 0 means one run. The default is [DefaultMaxRetries], the most [MaxMaxRetries].
func MaxRetries(n int) Option { return func(d *draft) { d.env.MaxRetries = n } }

// Priority sets the rank in its queue: higher runs first, the default is 0. A
// steady stream of higher ones may starve lower ones.
func Priority(p int8) Option { return func(d *draft) { d.env.Priority = p } }

// Delay lets the job wait for a time from its acceptance on. It overrides [At].
func Delay(delay time.Duration) Option {
	return func(d *draft) { d.env.Delay, d.env.NotBefore = delay, time.Time{} }
}

// At lets the job wait until t; a time in the past means now. It overrides
// [Delay].
func At(t time.Time) Option {
	return func(d *draft) { d.env.Delay, d.env.NotBefore = 0, t }
}

// Timeout bounds one run; its context ends then. 0 means the worker's timeout.
func Timeout(limit time.Duration) Option { return func(d *draft) { d.env.Timeout = limit } }

// Deadline limits the whole life of the job. After it, the job is not fetched and becomes dead. If
// the job runs at that time, the context of its handler ends. A job whose [Delay] ends after the
// deadline never runs.
func Deadline(t time.Time) Option { return func(d *draft) { d.env.Deadline = t } }

// Unique keeps a queue from having two jobs of the same kind and key at a time. While one is in
// one of the states, by default ready, delayed, or leased, another is not stored; see
// [OnConflict]. The key has 1 to 255 bytes.
//
// A job has its key while it runs, so its handler cannot enqueue the next job of that key:
// [Kind.Enqueue] with the handler's context returns [ErrOwnJob]. To run again later, return
// [Snooze], or leave [Leased] out of the states. [Enqueuer].Enqueue of an envelope returns no such
// error, but its Existing is true.
func Unique(key string, states ...State) Option {
	return func(d *draft) {
		if key == "" {
			d.refuse(invalid("unique key", "it is empty; leave the option out for a job without one"))
		}
		d.env.UniqueKey, d.env.UniqueIn = key, states
	}
}

// OnConflict says what happens when the key of [Unique] is taken. The default is [UseExisting].
func OnConflict(c Conflict) Option { return func(d *draft) { d.env.OnConflict = c } }

// IdempotencyKey names the effect of the job. Jobs of one kind and key never run at the same time.
// After one has succeeded, the others are removed without a run until [IdempotencyTTL] has passed.
// A look-up of a removed job returns [ErrNotFound]. The key has 1 to 255 bytes.
func IdempotencyKey(key string) Option {
	return func(d *draft) {
		if key == "" {
			d.refuse(invalid("idempotency key", "it is empty; leave the option out for a job without one"))
		}
		d.env.IdempotencyKey = key
	}
}

// IdempotencyTTL sets how long the success of the job counts for its [IdempotencyKey]. The default
// is [DefaultIdempotencyTTL].
func IdempotencyTTL(d time.Duration) Option {
	return func(draft *draft) { draft.env.IdempotencyTTL = d }
}

// Key names what the job belongs to besides its queue, such as a tenant or a host. The [Limits] of
// the queue say how many jobs of one key run at a time, and how many start in a period. Without such
// limits a key has no effect.
// The key has 1 to 255 bytes and no NUL byte.
func Key(key string) Option {
	return func(d *draft) {
		if key == "" {
			d.refuse(invalid("key", "it is empty; leave the option out for a job without one"))
		}
		d.env.Key = key
	}
}

// Cost sets how many starts a start of the job counts for the rates of its queue and of its [Key], 1 to
// [MaxCost]. The default is 1. In a queue without a [Rate] it has no effect. A queue refuses a cost that is
// more than the MaxCost of a rate.
func Cost(n int) Option {
	return func(d *draft) {
		if n < 1 {
			d.refuse(invalid("cost", "%d is not between 1 and %d", n, MaxCost))
		}
		d.env.Cost = n
	}
}

// Weight sets how many turns the [Key] of the job has while a key with jobs of weight 1 has one, 1 to
// [MaxTurns]. The default is 1. The job takes 1/n of a turn, and it keeps its weight over retries. In a queue
// without [Limits.Fair] it has no effect. A queue without [FairKeys] refuses it.
func Weight(n int) Option {
	return func(d *draft) {
		if n < 1 {
			d.refuse(invalid("weight", "%d is not between 1 and %d", n, MaxTurns))
		}
		d.env.Weight = n
	}
}

// InGroup makes a job a member of a group, which package group has made before. A queue without
// [Groups] refuses it.
func InGroup(name string) Option {
	return func(d *draft) {
		if name == "" {
			d.refuse(invalid("group", "it is empty; leave the option out for a job without one"))
		}
		d.env.Group = name
	}
}

// After lets the job start once the named jobs have succeeded. Until then it is blocked. The queue must hold
// them, or the record of their success (see [Retain]), or a job before this one in the same batch must have
// the ID: otherwise the enqueue returns [ErrNotFound]. If one of them dies, the job waits until somebody
// retries it; if a dead one is deleted, until somebody cancels the job. A job waits for at most [MaxAfter]
// others. A queue without [Prerequisites] refuses it.
func After(ids ...ID) Option {
	return func(d *draft) { d.env.After = slices.Concat(d.env.After, ids) }
}

// AfterAny is [After] for jobs that must all have ended: each has succeeded or is dead. If a dead job is retried
// afterwards, it still counts as ended.
func AfterAny(ids ...ID) Option {
	return func(d *draft) { d.env.AfterAny = slices.Concat(d.env.AfterAny, ids) }
}

// Retain keeps the record of the job for a time after its success, in the state
// [Completed]; it is removed then. By default it is removed at once.
func Retain(d time.Duration) Option { return func(draft *draft) { draft.env.Retain = d } }

// Backoff sets the policy for retries. On a job it is stored with the job and
// must be a [Strategy]; on a kind it may be any policy.
func Backoff(p Policy) Option {
	return func(d *draft) {
		var err error
		if d.policy, err = checkPolicy(p); err != nil {
			d.refuse(err)
		}
	}
}

// Header adds a header. The key has 1 to 255 bytes.
func Header(key, value string) Option {
	return func(d *draft) {
		headers := maps.Clone(d.env.Headers)
		if headers == nil {
			headers = make(map[string]string)
		}
		headers[key] = value
		d.env.Headers = headers
	}
}
