package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
)

// intake is a queue that only takes jobs in.
type intake struct {
	jobs []*pawl.Envelope
	ctx  context.Context
	err  error
}

func (q *intake) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	q.ctx = ctx
	if q.err != nil && !errors.Is(q.err, pawl.ErrUnknownOutcome) {
		return nil, q.err
	}
	done := make([]pawl.Enqueued, len(jobs))
	for i, job := range jobs {
		own := *job
		own.ID = pawl.NewID(time.Now())
		if done[i].ID = own.ID; q.err == nil {
			q.jobs = append(q.jobs, &own)
		}
	}
	return done, q.err
}

type mail struct {
	To  string
	Cc  []string
	Num int
}

// enqueue stores one job and returns it as the queue got it.
func enqueue(t *testing.T, k *pawl.Kind[mail], opts ...pawl.Option) *pawl.Envelope {
	t.Helper()
	q := new(intake)
	job, err := k.Enqueue(context.Background(), q, mail{To: "you"}, opts...)
	require.NoError(t, err)
	require.Len(t, q.jobs, 1)
	require.Equal(t, q.jobs[0].ID, job.ID, "the ID is the one that the queue gave")
	return q.jobs[0]
}

func TestEnqueueWithoutOptionsUsesTheDefaults(t *testing.T) {
	q := new(intake)
	k := pawl.Define[mail]("mail")
	require.Equal(t, "mail", k.Name())
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "mine")
	args := mail{To: "you", Cc: []string{"a", "b"}, Num: -3}
	job, err := k.Enqueue(ctx, q, args)
	require.NoError(t, err)
	require.False(t, job.ID.IsZero())
	require.Equal(t, ctx, q.ctx)

	payload, err := msgpack.Marshal(args)
	require.NoError(t, err)
	require.Equal(t, []*pawl.Envelope{{
		ID: job.ID, Kind: "mail", Payload: payload, MaxRetries: 3, // and nothing else: the queue fills in the rest
	}}, q.jobs)
}

// 0 retries is a choice, and not the same as no choice.
func TestMaxRetriesZeroIsKept(t *testing.T) {
	unset, zero := pawl.Define[mail]("k"), pawl.Define[mail]("k", pawl.MaxRetries(0))
	require.Equal(t, 3, enqueue(t, unset).MaxRetries)
	require.Equal(t, 0, enqueue(t, unset, pawl.MaxRetries(0)).MaxRetries)
	require.Equal(t, 0, enqueue(t, zero).MaxRetries)
	require.Equal(t, 7, enqueue(t, zero, pawl.MaxRetries(7)).MaxRetries)
	require.Equal(t, 1000, enqueue(t, zero, pawl.MaxRetries(1000)).MaxRetries)
}

func TestLaterOptionsOverrideEarlierOnes(t *testing.T) {
	k := pawl.Define[mail]("k",
		pawl.OnQueue("first"), pawl.OnQueue("kind's"), pawl.Priority(1), pawl.Timeout(time.Minute),
		pawl.Header("from", "kind"), pawl.Header("kept", "yes"))

	job := enqueue(t, k)
	require.Equal(t, "kind's", job.Queue)
	require.Equal(t, int8(1), job.Priority)
	require.Equal(t, time.Minute, job.Timeout)
	require.Equal(t, map[string]string{"from": "kind", "kept": "yes"}, job.Headers)

	job = enqueue(t, k, pawl.Priority(2), pawl.OnQueue("job's"), pawl.Priority(-3), pawl.Timeout(0),
		pawl.Header("from", "job"), pawl.Header("more", "1"))
	require.Equal(t, "job's", job.Queue)
	require.Equal(t, int8(-3), job.Priority)
	require.Zero(t, job.Timeout)
	require.Equal(t, map[string]string{"from": "job", "kept": "yes", "more": "1"}, job.Headers)

	require.Equal(t, map[string]string{"from": "kind", "kept": "yes"}, enqueue(t, k).Headers,
		"a job's headers do not leak into the next job")
}

// Rule: a job waits for all jobs that its options name.
func TestPrerequisitesAddUp(t *testing.T) {
	a, b, c := pawl.NewID(time.Now()), pawl.NewID(time.Now()), pawl.NewID(time.Now())
	e, err := pawl.Define[mail]("k").Envelope(mail{}, pawl.After(a), pawl.AfterAny(b), pawl.After(c), pawl.AfterAny(a, c))
	require.NoError(t, err)
	require.Equal(t, []pawl.ID{a, c}, e.After)
	require.Equal(t, []pawl.ID{b, a, c}, e.AfterAny)
}

func TestDelayAndAtOverrideEachOther(t *testing.T) {
	at := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	plain, later, then := pawl.Define[mail]("k"), pawl.Define[mail]("k", pawl.Delay(time.Hour)), pawl.Define[mail]("k", pawl.At(at))
	for name, test := range map[string]struct {
		job   *pawl.Envelope
		delay time.Duration
		at    time.Time
	}{
		"delay":                      {enqueue(t, plain, pawl.Delay(time.Minute)), time.Minute, time.Time{}},
		"at":                         {enqueue(t, plain, pawl.At(at)), 0, at},
		"delay after at":             {enqueue(t, plain, pawl.At(at), pawl.Delay(time.Minute)), time.Minute, time.Time{}},
		"at after delay":             {enqueue(t, plain, pawl.Delay(time.Minute), pawl.At(at)), 0, at},
		"the kind's delay":           {enqueue(t, later), time.Hour, time.Time{}},
		"at over the kind's delay":   {enqueue(t, later, pawl.At(at)), 0, at},
		"delay over the kind's at":   {enqueue(t, then, pawl.Delay(time.Minute)), time.Minute, time.Time{}},
		"no delay over the kind's":   {enqueue(t, later, pawl.Delay(0)), 0, time.Time{}},
		"a time in the past is kept": {enqueue(t, plain, pawl.At(at.AddDate(-100, 0, 0))), 0, at.AddDate(-100, 0, 0)},
	} {
		require.Equal(t, test.delay, test.job.Delay, name)
		require.Equal(t, test.at, test.job.NotBefore, name)
	}
}

func TestOptionsFillInTheJob(t *testing.T) {
	deadline := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	plain := pawl.Define[mail]("k")
	for name, test := range map[string]struct {
		opt  pawl.Option
		want pawl.Envelope
	}{
		"deadline":         {pawl.Deadline(deadline), pawl.Envelope{Deadline: deadline}},
		"unique":           {pawl.Unique("u"), pawl.Envelope{UniqueKey: "u"}},
		"unique in states": {pawl.Unique("u", pawl.Ready, pawl.Dead), pawl.Envelope{UniqueKey: "u", UniqueIn: []pawl.State{pawl.Ready, pawl.Dead}}},
		"on conflict":      {pawl.OnConflict(pawl.Reject), pawl.Envelope{OnConflict: pawl.Reject}},
		"idempotency key":  {pawl.IdempotencyKey("i"), pawl.Envelope{IdempotencyKey: "i"}},
		"idempotency TTL":  {pawl.IdempotencyTTL(time.Hour), pawl.Envelope{IdempotencyTTL: time.Hour}},
		"retain":           {pawl.Retain(time.Hour), pawl.Envelope{Retain: time.Hour}},
	} {
		job := enqueue(t, plain, test.opt)
		want := test.want
		want.ID, want.Kind, want.Payload, want.MaxRetries = job.ID, "k", job.Payload, pawl.DefaultMaxRetries
		require.Equal(t, want, *job, name)
		require.Equal(t, want.UniqueKey, enqueue(t, pawl.Define[mail]("k", test.opt)).UniqueKey, name)
	}
}

// Rule: a later option takes back the whole of an earlier one.
func TestJobOverridesTheKeysOfItsKind(t *testing.T) {
	k := pawl.Define[mail]("k", pawl.Unique("kind's", pawl.Ready), pawl.OnConflict(pawl.Reject), pawl.IdempotencyKey("i"),
		pawl.Retain(time.Hour), pawl.Deadline(time.Unix(1, 0)))
	job := enqueue(t, k, pawl.Unique("job's"), pawl.OnConflict(pawl.UseExisting), pawl.IdempotencyKey("j"), pawl.Retain(0),
		pawl.Deadline(time.Time{}))
	require.Equal(t, "job's", job.UniqueKey)
	require.Nil(t, job.UniqueIn, "the states were those of the other key")
	require.Zero(t, job.OnConflict)
	require.Equal(t, "j", job.IdempotencyKey)
	require.Zero(t, job.Retain)
	require.True(t, job.Deadline.IsZero())
}

// Rule: a key that turns out empty, such as a number that nobody filled in, is refused: it
// would promise nothing without a word.
func TestEmptyKeysAreRefused(t *testing.T) {
	for name, option := range map[string]pawl.Option{
		"unique key": pawl.Unique(""), "idempotency key": pawl.IdempotencyKey(""),
	} {
		_, err := pawl.Define[mail]("k").Envelope(mail{}, option)
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
}

// A job's policy is data in its envelope. A kind's is read at the worker, so that
// a new build changes it for jobs that are stored already.
func TestPolicyOfAJobIsStoredAndThatOfAKindIsNot(t *testing.T) {
	own := pawl.Fixed(sec)
	k := pawl.Define[mail]("k", pawl.Backoff(own))
	policy, err := k.Policy()
	require.NoError(t, err)
	require.Equal(t, own, policy)
	require.Nil(t, enqueue(t, k).Policy)

	job := enqueue(t, k, pawl.Backoff(pawl.Fixed(time.Hour)), pawl.Backoff(pawl.None()))
	require.NotNil(t, job.Policy, "none is a policy, too")
	require.Equal(t, pawl.None(), *job.Policy)

	policy, err = pawl.Define[mail]("k").Policy()
	require.NoError(t, err)
	require.Nil(t, policy)
}

func TestPolicyOfAKindMayBeAny(t *testing.T) {
	custom := policyFunc(func(pawl.Retry) (time.Duration, bool) { return 42, true })
	k := pawl.Define[mail]("k", pawl.Backoff(custom))
	policy, err := k.Policy()
	require.NoError(t, err)
	delay, _ := policy.Delay(pawl.Retry{})
	require.Equal(t, time.Duration(42), delay)
	require.Nil(t, enqueue(t, k).Policy)
}

// Define cannot return an error, since kinds are package variables. Whatever is
// done with the kind first reports it, and nothing reaches the queue.
func TestBadKindIsReportedAtItsFirstUse(t *testing.T) {
	for name, test := range map[string]struct {
		field string
		kind  *pawl.Kind[mail]
	}{
		"empty name":       {"kind", pawl.Define[mail]("")},
		"name too long":    {"kind", pawl.Define[mail](strings.Repeat("x", 256))},
		"NUL in the name":  {"kind", pawl.Define[mail]("a\x00")},
		"bad retries":      {"max retries", pawl.Define[mail]("k", pawl.MaxRetries(-1))},
		"too many retries": {"max retries", pawl.Define[mail]("k", pawl.MaxRetries(1001))},
		"bad policy":       {"policy", pawl.Define[mail]("k", pawl.Backoff(pawl.Fixed(-1)))},
		"empty queue":      {"queue", pawl.Define[mail]("k", pawl.OnQueue(""))},
		"bad timeout":      {"timeout", pawl.Define[mail]("k", pawl.Timeout(-1))},
		"bad header":       {"header key", pawl.Define[mail]("k", pawl.Header("", "v"))},
		"bad unique state": {"unique states", pawl.Define[mail]("k", pawl.Unique("u", "dancing"))},
		"bad TTL":          {"idempotency TTL", pawl.Define[mail]("k", pawl.IdempotencyTTL(-1))},
	} {
		t.Run(name, func(t *testing.T) {
			q := new(intake)
			// A good option for the job does not heal the kind.
			job, err := test.kind.Enqueue(context.Background(), q, mail{}, pawl.MaxRetries(1), pawl.OnQueue("q"),
				pawl.Timeout(sec), pawl.Backoff(pawl.None()))
			requireInvalid(t, err, test.field)
			require.True(t, job.ID.IsZero())
			require.Empty(t, q.jobs)

			_, err = test.kind.Policy()
			requireInvalid(t, err, test.field)
			_, err = test.kind.Envelope(mail{})
			requireInvalid(t, err, test.field)
		})
	}
}

func TestBadOptionOfAJobIsRefused(t *testing.T) {
	custom := policyFunc(func(pawl.Retry) (time.Duration, bool) { return 0, false })
	for name, test := range map[string]struct {
		field string
		opt   pawl.Option
	}{
		"negative delay":        {"delay", pawl.Delay(-1)},
		"negative timeout":      {"timeout", pawl.Timeout(-1)},
		"negative retries":      {"max retries", pawl.MaxRetries(-1)},
		"1 001 retries":         {"max retries", pawl.MaxRetries(1001)},
		"empty queue":           {"queue", pawl.OnQueue("")},
		"queue too long":        {"queue", pawl.OnQueue(strings.Repeat("q", 256))},
		"bad strategy":          {"policy", pawl.Backoff(pawl.Exponential(sec, 0.5))},
		"a policy that is code": {"policy", pawl.Backoff(custom)},
		"header key too long":   {"header key", pawl.Header(strings.Repeat("k", 256), "v")},
		"unique key too long":   {"unique key", pawl.Unique(strings.Repeat("u", 256))},
		"states without a key":  {"unique key", pawl.Unique("", pawl.Ready)},
		"unknown state":         {"unique states", pawl.Unique("u", "dancing")},
		"unknown conflict":      {"conflict", pawl.OnConflict(3)},
		"idempotency key":       {"idempotency key", pawl.IdempotencyKey(strings.Repeat("i", 256))},
		"negative TTL":          {"idempotency TTL", pawl.IdempotencyTTL(-1)},
		"negative retention":    {"retention", pawl.Retain(-1)},
		"header too large":      {"headers", pawl.Header("k", strings.Repeat("v", 8<<10+1))},
	} {
		t.Run(name, func(t *testing.T) {
			q := new(intake)
			job, err := pawl.Define[mail]("k").Enqueue(context.Background(), q, mail{}, test.opt)
			requireInvalid(t, err, test.field)
			require.True(t, job.ID.IsZero())
			require.Empty(t, q.jobs)
			_, err = pawl.Define[mail]("k").Envelope(mail{}, test.opt)
			requireInvalid(t, err, test.field)
		})
	}
}

func TestEnqueuePassesOnTheErrorOfTheQueue(t *testing.T) {
	refused := errors.New("disk on fire")
	job, err := pawl.Define[mail]("mail").Enqueue(context.Background(), &intake{err: refused}, mail{})
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "mail", "it names the kind")
	require.True(t, job.ID.IsZero(), "an ID is returned when the job is durable")
}

// Rule: Enqueue says whether a job with the same unique key was there already, and
// returns that job's ID then.
func TestEnqueueReportsAnExistingJob(t *testing.T) {
	q := memory.New(nil)
	defer q.Close()
	for name, to := range map[string]pawl.Enqueuer{"a queue": q, "a signing queue": keyring(t, "new").Signing(q)} {
		t.Run(name, func(t *testing.T) {
			k := pawl.Define[mail]("mail", pawl.OnQueue(name))
			first, err := k.Enqueue(t.Context(), to, mail{}, pawl.Unique("u"))
			require.NoError(t, err)
			require.False(t, first.Existing)
			again, err := k.Enqueue(t.Context(), to, mail{}, pawl.Unique("u"))
			require.NoError(t, err)
			require.Equal(t, pawl.Enqueued{ID: first.ID, Existing: true}, again)
			other, err := k.Enqueue(t.Context(), to, mail{}, pawl.Unique("other"))
			require.NoError(t, err)
			require.False(t, other.Existing)
			require.NotEqual(t, first.ID, other.ID)
		})
	}
}

func TestEnvelopePreparesWithoutStoring(t *testing.T) {
	k := pawl.Define[mail]("mail", pawl.OnQueue("slow"))
	job, err := k.Envelope(mail{To: "you"}, pawl.Priority(9))
	require.NoError(t, err)
	require.Equal(t, enqueue(t, k, pawl.Priority(9)).Payload, job.Payload)
	require.Equal(t, "slow", job.Queue)
	require.Equal(t, int8(9), job.Priority)
	require.True(t, job.ID.IsZero(), "the queue gives the ID")
}

func TestJobGivesBackTheArguments(t *testing.T) {
	k := pawl.Define[mail]("mail", pawl.MaxRetries(2))
	e, err := k.Envelope(mail{To: "you", Cc: []string{"a"}, Num: 7})
	require.NoError(t, err)
	e.Attempts = 1
	job, err := k.Job(e)
	require.NoError(t, err)
	require.Equal(t, mail{To: "you", Cc: []string{"a"}, Num: 7}, job.Args)
	require.Equal(t, 2, job.Attempt, "1-based")
	require.False(t, job.Last)
	require.Equal(t, e, job.Envelope)
	require.NotSame(t, e, job.Envelope, "a handler may do to it what it likes")

	e.Attempts = 2
	job, err = k.Job(e)
	require.NoError(t, err)
	require.True(t, job.Last)
}

// A pointer to a strategy is as good as the strategy.
func TestBackoffTakesPointer(t *testing.T) {
	good, bad := pawl.Fixed(time.Second), pawl.Fixed(-time.Second)
	e, err := pawl.Define[mail]("k").Envelope(mail{}, pawl.Backoff(&good))
	require.NoError(t, err)
	require.Equal(t, good, *e.Policy)
	_, err = pawl.Define[mail]("k", pawl.Backoff(&bad)).Policy()
	requireInvalid(t, err, "policy")
}

// policyFunc is a policy of an app's own.
type policyFunc func(pawl.Retry) (time.Duration, bool)

func (f policyFunc) Delay(r pawl.Retry) (time.Duration, bool) { return f(r) }

// Rule: what a kind needs belongs to the kind. A job cannot have needs of its own, and a name that is no
// name is refused by the first use of the kind.
func TestNeeds(t *testing.T) {
	k := pawl.Define[int]("needs", pawl.Needs("network"), pawl.Needs("mains"))
	require.Equal(t, []string{"network", "mains"}, k.Needs())
	_, err := k.Envelope(1)
	require.NoError(t, err)
	var invalid *pawl.InvalidError
	_, err = k.Envelope(1, pawl.Needs("disk"))
	require.ErrorAs(t, err, &invalid, "a need of a job")
	for _, name := range []string{"", strings.Repeat("x", 1000)} {
		_, err = pawl.Define[int]("needs", pawl.Needs(name)).Envelope(1)
		require.ErrorAs(t, err, &invalid, "a need named %.9q", name)
		require.Equal(t, "need", invalid.Field)
	}
}
