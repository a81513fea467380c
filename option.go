package pawl

import (
	"maps"
	"slices"
	"time"
)

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
// its type lacks: these are skipped. Give it to [Define] for as long as stored jobs
// may have a field that was removed.
func AllowUnknownFields() Option {
	return ofKind(func(_ *draft, k *kindSettings) { k.unknownFields = true })
}

// Alias adds a former name to a kind, so that its worker also runs jobs that were stored under that name.
// Give it to [Define]. It may be given several times.
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

// ofKind makes an option that is for kinds only.
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

// MaxRetries sets how often a failed job is retried: it runs at most n+1 times. 0 means one attempt. The
// default is [DefaultMaxRetries], and the maximum is [MaxMaxRetries].
func MaxRetries(n int) Option { return func(d *draft) { d.env.MaxRetries = n } }

// Priority sets the rank in its queue: higher runs first, the default is 0. A steady stream of jobs with a
// higher priority may starve the others.
func Priority(p int8) Option { return func(d *draft) { d.env.Priority = p } }

// Delay makes the job wait this long after the queue accepts it. It overrides [At].
func Delay(delay time.Duration) Option {
	return func(d *draft) { d.env.Delay, d.env.NotBefore = delay, time.Time{} }
}

// At makes the job wait until t; a time in the past means now. It overrides [Delay].
func At(t time.Time) Option {
	return func(d *draft) { d.env.Delay, d.env.NotBefore = 0, t }
}

// Timeout bounds one attempt: the context of its handler ends then. 0 means the worker's timeout.
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
// After one has succeeded, the others are removed without an attempt until [IdempotencyTTL] has passed.
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

// Cost sets how many starts the start of the job counts as, for the rates of its queue and of its [Key]: 1
// to [MaxCost]. The default is 1. In a queue without a [Rate] it has no effect. A queue refuses a cost that
// is more than the MaxCost of a rate.
func Cost(n int) Option {
	return func(d *draft) {
		if n < 1 {
			d.refuse(invalid("cost", "%d is not between 1 and %d", n, MaxCost))
		}
		d.env.Cost = n
	}
}

// Weight sets how many turns the [Key] of the job has while a key with jobs of weight 1 has one: 1 to
// [MaxTurns]. The default is 1. The job takes 1/n of a turn, and it keeps its weight through retries. In a
// queue without [Limits.Fair] it has no effect. A queue without [FairKeys] refuses it.
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
// the ID: otherwise the enqueue returns [ErrNotFound]. If one of them becomes dead, the job waits until somebody
// retries that one. If a dead one is deleted, the job waits until somebody cancels it. A job waits for at
// most [MaxAfter] others. A queue without [Prerequisites] refuses it.
func After(ids ...ID) Option {
	return func(d *draft) { d.env.After = slices.Concat(d.env.After, ids) }
}

// AfterAny is [After] for jobs that must all have ended: each has succeeded or is dead. If a dead job is retried
// afterwards, it still counts as ended.
func AfterAny(ids ...ID) Option {
	return func(d *draft) { d.env.AfterAny = slices.Concat(d.env.AfterAny, ids) }
}

// Retain keeps the record of the job for d after its success, in the state [Completed]. By default, or if d
// is 0, the queue removes the job at once.
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
