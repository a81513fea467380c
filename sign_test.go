package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, pawl.MinSecretBytes) }

// keyring has the keys "old" and "new"; current signs.
func keyring(t *testing.T, current string) *pawl.Keyring {
	t.Helper()
	k, err := pawl.NewKeyring(current, map[string][]byte{"old": secret(1), "new": secret(2)})
	require.NoError(t, err)
	return k
}

// signedJob has a value in every field.
func signedJob(t *testing.T, k *pawl.Keyring) *pawl.Envelope {
	t.Helper()
	policy := pawl.Fixed(sec)
	e := &pawl.Envelope{
		Kind: "mail", Queue: "slow", Payload: []byte("payload"), Headers: map[string]string{"trace": "1"},
		IdempotencyKey: "order 7", IdempotencyTTL: time.Hour, UniqueKey: "u", UniqueIn: []pawl.State{pawl.Ready},
		MaxRetries: 3, Policy: &policy, Timeout: time.Minute,
	}
	require.NoError(t, k.Sign(e))
	return e
}

// Rule: signing completes what it signs, and changes nothing else.
func TestSignCompletesWhatItSigns(t *testing.T) {
	k := keyring(t, "new")
	e := &pawl.Envelope{Kind: "mail", Payload: []byte("p")}
	before := time.Now()
	require.NoError(t, k.Sign(e))
	require.False(t, e.ID.IsZero())
	require.WithinRange(t, e.Created, before.Round(0), time.Now())
	require.Equal(t, pawl.Envelope{
		ID: e.ID, Created: e.Created, Signature: e.Signature,
		Kind: "mail", Payload: []byte("p"), Queue: pawl.DefaultQueue, Origin: pawl.DefaultQueue, KeyID: "new",
	}, *e)
	require.NoError(t, k.Verify(e))

	given := &pawl.Envelope{ID: pawl.ID{7}, Kind: "mail", Queue: "here", Origin: "first", Created: time.Unix(1, 2)}
	require.NoError(t, k.Sign(given))
	require.Equal(t, pawl.ID{7}, given.ID)
	require.Equal(t, "here", given.Queue)
	require.Equal(t, "first", given.Origin)
	require.Equal(t, time.Unix(1, 2), given.Created)
	require.NoError(t, k.Verify(given))
}

// Rule: what is fixed for the life of a job is signed, each field by itself, so that
// moving a byte from one to the next shows too.
func TestChangeOfASignedFieldIsSeen(t *testing.T) {
	k := keyring(t, "new")
	for name, change := range map[string]func(*pawl.Envelope){
		"ID":                     func(e *pawl.Envelope) { e.ID[15] ^= 1 },
		"another ID":             func(e *pawl.Envelope) { e.ID = pawl.NewID(time.Now()) },
		"origin":                 func(e *pawl.Envelope) { e.Origin = "fast" },
		"no origin":              func(e *pawl.Envelope) { e.Origin = "" },
		"kind":                   func(e *pawl.Envelope) { e.Kind = "Mail" },
		"payload":                func(e *pawl.Envelope) { e.Payload = []byte("pay1oad") },
		"longer payload":         func(e *pawl.Envelope) { e.Payload = append(e.Payload, 0) },
		"no payload":             func(e *pawl.Envelope) { e.Payload = nil },
		"idempotency key":        func(e *pawl.Envelope) { e.IdempotencyKey = "order 8" },
		"no idempotency key":     func(e *pawl.Envelope) { e.IdempotencyKey = "" },
		"created 1 ns later":     func(e *pawl.Envelope) { e.Created = e.Created.Add(1) },
		"created 1 s later":      func(e *pawl.Envelope) { e.Created = e.Created.Add(time.Second) },
		"key ID":                 func(e *pawl.Envelope) { e.KeyID = "old" },
		"a bit of the signature": func(e *pawl.Envelope) { e.Signature[31] ^= 1 },
		"half a signature":       func(e *pawl.Envelope) { e.Signature = e.Signature[:16] },
		"a longer signature":     func(e *pawl.Envelope) { e.Signature = append(e.Signature, 0) },
		"no signature":           func(e *pawl.Envelope) { e.Signature = nil },
		"an empty signature":     func(e *pawl.Envelope) { e.Signature = []byte{} },
		"a byte moved from origin to kind": func(e *pawl.Envelope) {
			e.Origin, e.Kind = e.Origin[:3], e.Origin[3:]+e.Kind
		},
		"a byte moved from payload to key": func(e *pawl.Envelope) {
			e.Payload, e.IdempotencyKey = e.Payload[:6], "d"+e.IdempotencyKey
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := signedJob(t, k)
			require.NoError(t, k.Verify(e))
			change(e)
			require.ErrorIs(t, k.Verify(e), pawl.ErrSignature)
		})
	}
}

// Rule: what changes as a job moves is not signed, so one that was requeued or
// forwarded still verifies.
func TestChangeOfAnUnsignedFieldIsNot(t *testing.T) {
	k := keyring(t, "new")
	for name, change := range map[string]func(*pawl.Envelope){
		"queue":            func(e *pawl.Envelope) { e.Queue = "failed_jobs" },
		"sequence":         func(e *pawl.Envelope) { e.Seq = 9 },
		"priority":         func(e *pawl.Envelope) { e.Priority = -1 },
		"not before":       func(e *pawl.Envelope) { e.NotBefore = time.Now() },
		"delay":            func(e *pawl.Envelope) { e.Delay = sec },
		"deadline":         func(e *pawl.Envelope) { e.Deadline = time.Now() },
		"timeout":          func(e *pawl.Envelope) { e.Timeout = sec },
		"max retries":      func(e *pawl.Envelope) { e.MaxRetries = 0 },
		"policy":           func(e *pawl.Envelope) { e.Policy = nil },
		"attempts":         func(e *pawl.Envelope) { e.Attempts = 3 },
		"crashes":          func(e *pawl.Envelope) { e.Crashes = 3 },
		"failures":         func(e *pawl.Envelope) { e.Failures = 3 },
		"death":            func(e *pawl.Envelope) { e.Death = &pawl.Death{Reason: pawl.ReasonPoison} },
		"history":          func(e *pawl.Envelope) { e.History = []pawl.Failure{{Attempt: 1}} },
		"headers":          func(e *pawl.Envelope) { e.Headers = map[string]string{"trace": "2"} },
		"unique key":       func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = "", nil },
		"idempotency TTL":  func(e *pawl.Envelope) { e.IdempotencyTTL = 1 },
		"retention":        func(e *pawl.Envelope) { e.Retain = sec },
		"cancelled":        func(e *pawl.Envelope) { e.Cancelled = true },
		"backoff":          func(e *pawl.Envelope) { e.BackoffSince = time.Now() },
		"completed":        func(e *pawl.Envelope) { e.Completed = time.Now() },
		"state":            func(e *pawl.Envelope) { e.State, e.LeasedSince = pawl.Leased, time.Now() },
		"zone of creation": func(e *pawl.Envelope) { e.Created = e.Created.In(time.FixedZone("", 3600)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := signedJob(t, k)
			change(e)
			require.NoError(t, k.Verify(e))
		})
	}
}

// Rule: a signature outlives the record, as long as the payload that lies apart is
// put back.
func TestStoredJobStillVerifies(t *testing.T) {
	k := keyring(t, "new")
	e := signedJob(t, k)
	stored, _, err := driver.ParseRecord(driver.AppendRecord(nil, e, 0))
	require.NoError(t, err)
	require.NoError(t, k.Verify(stored))
}

// Rule: during a rotation both keys verify; the current one signs. A key that is
// dropped verifies no more, and one of the same name with another secret neither.
func TestRotation(t *testing.T) {
	before, after := keyring(t, "old"), keyring(t, "new")
	byOld, byNew := signedJob(t, before), signedJob(t, after)
	require.Equal(t, "old", byOld.KeyID)
	require.Equal(t, "new", byNew.KeyID)
	for _, k := range []*pawl.Keyring{before, after} {
		require.NoError(t, k.Verify(byOld))
		require.NoError(t, k.Verify(byNew))
	}

	done, err := pawl.NewKeyring("new", map[string][]byte{"new": secret(2)})
	require.NoError(t, err)
	require.NoError(t, done.Verify(byNew))
	require.ErrorIs(t, done.Verify(byOld), pawl.ErrSignature)
	other, err := pawl.NewKeyring("new", map[string][]byte{"new": secret(3)})
	require.NoError(t, err)
	require.ErrorIs(t, other.Verify(byNew), pawl.ErrSignature)

	require.NoError(t, after.Sign(byOld), "a job may be signed again")
	require.Equal(t, "new", byOld.KeyID)
	require.NoError(t, done.Verify(byOld))
}

func TestKeyringIsRefused(t *testing.T) {
	good := secret(1)
	for name, test := range map[string]struct {
		field   string
		current string
		keys    map[string][]byte
	}{
		"no keys":                               {"key ID", "a", nil},
		"no current key":                        {"key ID", "", map[string][]byte{"a": good}},
		"unknown current key":                   {"key ID", "b", map[string][]byte{"a": good}},
		"empty key ID":                          {"key ID", "", map[string][]byte{"": good}},
		"key ID of 256 bytes":                   {"key ID", "a", map[string][]byte{"a": good, strings.Repeat("k", 256): good}},
		"key ID of 4 MiB":                       {"key ID", strings.Repeat("k", 4<<20), map[string][]byte{"a": good}},
		"no secret":                             {"secret", "a", map[string][]byte{"a": nil}},
		"secret of 31 bytes":                    {"secret", "a", map[string][]byte{"a": good[1:]}},
		"secret of 31 bytes that only verifies": {"secret", "a", map[string][]byte{"a": good, "old": good[1:]}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := pawl.NewKeyring(test.current, test.keys)
			requireInvalid(t, err, test.field)
			require.Nil(t, k)
			require.Less(t, len(err.Error()), 300)
			require.NotContains(t, err.Error(), string(good[:8]), "a secret is not told")
		})
	}
}

// Rule: key IDs of stored jobs come from anybody; none is more than a lookup.
func TestHostileKeyIDIsRefused(t *testing.T) {
	k := keyring(t, "new")
	for _, id := range []string{"", "new\x00", "NEW", "new ", "../new", "\xff\xfe", strings.Repeat("new", 1<<16)} {
		e := signedJob(t, k)
		e.KeyID = id
		require.ErrorIs(t, k.Verify(e), pawl.ErrSignature, "%.20q", id)
	}
	require.ErrorIs(t, k.Verify(&pawl.Envelope{}), pawl.ErrSignature)
}

// Rule: the keyring keeps its own copy of the secrets.
func TestKeyringKeepsItsSecrets(t *testing.T) {
	own := secret(1)
	keys := map[string][]byte{"a": own}
	k, err := pawl.NewKeyring("a", keys)
	require.NoError(t, err)
	e := signedJob(t, k)
	clear(own)
	delete(keys, "a")
	require.NoError(t, k.Verify(e))
	require.NoError(t, k.Sign(e))
}

// Rule: a job that cannot be enqueued, or might take over the ID of another, is not
// signed and not changed.
func TestSignRefuses(t *testing.T) {
	k := keyring(t, "new")
	for name, test := range map[string]struct {
		field string
		e     pawl.Envelope
	}{
		"no kind":  {"kind", pawl.Envelope{}},
		"replaces": {"conflict", pawl.Envelope{Kind: "k", UniqueKey: "u", OnConflict: pawl.Replace}},
	} {
		e := test.e
		requireInvalid(t, k.Sign(&e), test.field)
		require.Equal(t, test.e, e, name)
	}
	requireInvalid(t, k.Sign(nil), "job")
}

// Rule: an enqueuer that signs stores signed copies and returns what its queue returns.
func TestSigningEnqueuer(t *testing.T) {
	k := keyring(t, "new")
	q := &shelf{}
	one, two := &pawl.Envelope{Kind: "a"}, &pawl.Envelope{Kind: "b", Queue: "slow"}
	done, err := k.Signing(q).Enqueue(t.Context(), one, two)
	require.NoError(t, err)
	require.Equal(t, pawl.Envelope{Kind: "a"}, *one)
	require.Equal(t, pawl.Envelope{Kind: "b", Queue: "slow"}, *two)
	require.Len(t, q.jobs, 2)
	for i, e := range q.jobs {
		require.NoError(t, k.Verify(e))
		require.Equal(t, pawl.Enqueued{ID: e.ID}, done[i])
	}
	require.NoError(t, withid.Enqueue(t.Context(), k.Signing(q)), "an empty batch is nothing")

	job, err := pawl.Define[mail]("mail").Enqueue(t.Context(), k.Signing(q), mail{To: "you"})
	require.NoError(t, err)
	require.Equal(t, q.jobs[2].ID, job.ID)
	require.NoError(t, k.Verify(q.jobs[2]))
}

// Rule: jobs that are refused are not changed, whoever refuses them.
func TestSigningEnqueuerChangesNoJobThatIsRefused(t *testing.T) {
	k := keyring(t, "new")
	full := errors.New("full")
	for name, test := range map[string]struct {
		err  error // of the queue
		jobs []*pawl.Envelope
		want error
	}{
		"by the queue":     {full, []*pawl.Envelope{{Kind: "a"}, {Kind: "b"}}, full},
		"by its own check": {nil, []*pawl.Envelope{{Kind: "a"}, {Kind: ""}}, pawl.ErrInvalid},
		"since it replaces": {nil, []*pawl.Envelope{{Kind: "a"}, {Kind: "a", UniqueKey: "u", OnConflict: pawl.Replace}},
			pawl.ErrInvalid},
		"nil": {nil, []*pawl.Envelope{{Kind: "a"}, nil}, pawl.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			first := *test.jobs[0]
			q := &shelf{err: test.err}
			require.ErrorIs(t, withid.Enqueue(t.Context(), k.Signing(q), test.jobs...), test.want)
			require.Equal(t, first, *test.jobs[0])
			require.Empty(t, q.jobs)
		})
	}

	q := &shelf{}
	twice := &pawl.Envelope{Kind: "a"}
	require.ErrorIs(t, withid.Enqueue(t.Context(), k.Signing(q), twice, twice), pawl.ErrConflict, "as without signing")
	require.Equal(t, pawl.Envelope{Kind: "a"}, *twice)
	require.Empty(t, q.jobs)
}

// Rule: after an unknown outcome the caller gets the IDs that were signed.
func TestSigningEnqueuerReturnsIDsOfUnknownOutcome(t *testing.T) {
	k := keyring(t, "new")
	e := &pawl.Envelope{Kind: "a"}
	q := &shelf{err: pawl.ErrUnknownOutcome}
	done, err := k.Signing(q).Enqueue(t.Context(), e)
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.False(t, done[0].ID.IsZero())
	require.Equal(t, q.perhaps[0].ID, done[0].ID)
	require.NoError(t, k.Verify(q.perhaps[0]))
}

// shelf is a queue that only takes jobs in, and checks them as every queue does.
type shelf struct {
	jobs    []*pawl.Envelope
	perhaps []*pawl.Envelope // those of an unknown outcome
	err     error
}

func (s *shelf) Enqueue(_ context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if _, err := driver.CheckBatch(jobs, pawl.DefaultMaxPayload); err != nil {
		return nil, err
	}
	done, own := make([]pawl.Enqueued, len(jobs)), make([]*pawl.Envelope, len(jobs))
	for i, e := range jobs {
		c := *e
		driver.Accept(&c, time.Now())
		own[i], done[i].ID = &c, c.ID
	}
	switch {
	case errors.Is(s.err, pawl.ErrUnknownOutcome):
		s.perhaps = append(s.perhaps, own...)
	case s.err != nil:
		return nil, s.err
	default:
		s.jobs = append(s.jobs, own...)
	}
	return done, s.err
}

// Rule: a keyring without keys signs nothing and verifies nothing.
func TestKeyringWithoutKeysTrustsNobody(t *testing.T) {
	signed, empty := signedJob(t, keyring(t, "new")), new(pawl.Keyring)
	require.ErrorIs(t, empty.Verify(signed), pawl.ErrSignature)
	require.ErrorIs(t, empty.Verify(&pawl.Envelope{Kind: "mail"}), pawl.ErrSignature)
	require.ErrorIs(t, empty.Verify(&pawl.Envelope{Kind: "mail", Signature: []byte("s")}), pawl.ErrSignature)
	job := &pawl.Envelope{Kind: "mail"}
	require.ErrorIs(t, empty.Sign(job), pawl.ErrInvalid)
	require.Empty(t, job.Signature)
	_, err := pawl.NewKeyring("", nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)
}

// Rule: whoever may enqueue cannot move the idempotency key of a signed job into the header of
// forwarded jobs: such a copy would run although the key is done.
func TestCopyWithoutItsIdempotencyKeyDoesNotVerify(t *testing.T) {
	k := keyring(t, "new")
	job := &pawl.Envelope{Kind: "pay", IdempotencyKey: "invoice 7"}
	require.NoError(t, k.Sign(job))
	require.NoError(t, k.Verify(job))
	require.NoError(t, k.Forwarded().Verify(job))
	job.IdempotencyKey, job.Headers = "", map[string]string{pawl.HeaderIdempotencyKey: "invoice 7"}
	require.ErrorIs(t, k.Verify(job), pawl.ErrSignature)
	require.NoError(t, k.Forwarded().Verify(job))
}
