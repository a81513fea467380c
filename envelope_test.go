package pawl_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// requireInvalid demands an error that names the field and says something.
func requireInvalid(t *testing.T, err error, field string) {
	t.Helper()
	require.ErrorIs(t, err, pawl.ErrInvalid)
	var invalid *pawl.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, field, invalid.Field)
	require.NotEmpty(t, invalid.Reason)
	require.Equal(t, "invalid "+field+": "+invalid.Reason, err.Error())
}

func headers(n int) map[string]string {
	h := make(map[string]string)
	for i := range n {
		h[fmt.Sprintf("key %d", i)] = "value"
	}
	return h
}

func TestEnvelopeIsRefused(t *testing.T) {
	long := strings.Repeat("x", pawl.MaxNameBytes+1)
	bad := pawl.Fixed(-1)
	for name, test := range map[string]struct {
		field string
		spoil func(*pawl.Envelope)
	}{
		"empty kind":              {"kind", func(e *pawl.Envelope) { e.Kind = "" }},
		"kind of 256 bytes":       {"kind", func(e *pawl.Envelope) { e.Kind = long }},
		"kind with a NUL byte":    {"kind", func(e *pawl.Envelope) { e.Kind = "a\x00b" }},
		"queue of 256 bytes":      {"queue", func(e *pawl.Envelope) { e.Queue = long }},
		"queue with a NUL byte":   {"queue", func(e *pawl.Envelope) { e.Queue = "a\x00" }},
		"negative max retries":    {"max retries", func(e *pawl.Envelope) { e.MaxRetries = -1 }},
		"1 001 retries":           {"max retries", func(e *pawl.Envelope) { e.MaxRetries = 1001 }},
		"retries without an end":  {"max retries", func(e *pawl.Envelope) { e.MaxRetries = math.MaxInt }},
		"negative delay":          {"delay", func(e *pawl.Envelope) { e.Delay = -1 }},
		"negative timeout":        {"timeout", func(e *pawl.Envelope) { e.Timeout = -1 }},
		"bad policy":              {"policy", func(e *pawl.Envelope) { e.Policy = &bad }},
		"65 headers":              {"headers", func(e *pawl.Envelope) { e.Headers = headers(65) }},
		"empty header key":        {"header key", func(e *pawl.Envelope) { e.Headers[""] = "v" }},
		"header key of 256 bytes": {"header key", func(e *pawl.Envelope) { e.Headers[long] = "v" }},
		"header key with NUL":     {"header key", func(e *pawl.Envelope) { e.Headers["\x00"] = "v" }},
		"origin of 256 bytes":     {"queue", func(e *pawl.Envelope) { e.Origin = long }},
		"unique key of 256 bytes": {"unique key", func(e *pawl.Envelope) { e.UniqueKey = long }},
		"states without a key":    {"unique key", func(e *pawl.Envelope) { e.UniqueIn = []pawl.State{pawl.Ready} }},
		"unique in no state":      {"unique states", func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = "u", []pawl.State{"Ready"} }},
		"unique in an empty one":  {"unique states", func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = "u", []pawl.State{pawl.Ready, ""} }},
		"unknown conflict":        {"conflict", func(e *pawl.Envelope) { e.OnConflict = pawl.Replace + 1 }},
		"idempotency key of 256":  {"idempotency key", func(e *pawl.Envelope) { e.IdempotencyKey = long }},
		"negative TTL":            {"idempotency TTL", func(e *pawl.Envelope) { e.IdempotencyTTL = -1 }},
		"negative retention":      {"retention", func(e *pawl.Envelope) { e.Retain = -1 }},
		"key ID of 256 bytes":     {"key ID", func(e *pawl.Envelope) { e.KeyID = long }},
		"signature of 65 bytes":   {"signature", func(e *pawl.Envelope) { e.Signature = make([]byte, 65) }},
		"deadline before it starts": {"deadline", func(e *pawl.Envelope) {
			e.NotBefore = time.Now()
			e.Deadline = e.NotBefore.Add(-1)
		}},
		"headers of 8 KiB + 1": {"headers", func(e *pawl.Envelope) { e.Headers["k"] = strings.Repeat("v", 8<<10-len("tracek1")+1) }},
	} {
		t.Run(name, func(t *testing.T) {
			e := &pawl.Envelope{Kind: "k", Queue: "q", Headers: map[string]string{"trace": "1"}}
			require.NoError(t, driver.CheckEnvelope(e), "it is the change below that counts")
			test.spoil(e)
			requireInvalid(t, driver.CheckEnvelope(e), test.field)
		})
	}
}

// The limits themselves are allowed: 255 bytes, 1 000 retries, 64 headers.
func TestEnvelopeAtTheLimitsIsAccepted(t *testing.T) {
	longest := strings.Repeat("x", pawl.MaxNameBytes)
	policy := pawl.DefaultStrategy()
	e := &pawl.Envelope{
		Kind: longest, Queue: longest, Policy: &policy, Priority: math.MinInt8,
		MaxRetries: pawl.MaxMaxRetries, Delay: math.MaxInt64, Timeout: math.MaxInt64,
		Headers: headers(pawl.MaxHeaders - 1),

		Origin: longest, UniqueKey: longest, UniqueIn: pawl.States(), OnConflict: pawl.Replace,
		IdempotencyKey: longest, IdempotencyTTL: math.MaxInt64, Retain: math.MaxInt64,
		KeyID: longest, Signature: make([]byte, 64), NotBefore: time.Unix(9, 0), Deadline: time.Unix(9, 0),
	}
	size := 0
	for key, value := range e.Headers {
		size += len(key) + len(value)
	}
	e.Headers[longest] = strings.Repeat("v", pawl.MaxHeaderBytes-size-len(longest))
	require.NoError(t, driver.CheckEnvelope(e))
}

func TestMinimalEnvelopeIsAccepted(t *testing.T) {
	require.NoError(t, driver.CheckEnvelope((&pawl.Envelope{Kind: "k"})), "a kind is all that a job needs")
}

// Names are bytes, not text: whoever writes them in another encoding may.
func TestNamesNeedNotBeUTF8(t *testing.T) {
	require.NoError(t, driver.CheckKind("\xff\xfe"))
	require.NoError(t, driver.CheckQueue("größer als 3 %"))
}

func TestNameChecks(t *testing.T) {
	requireInvalid(t, driver.CheckKind(""), "kind")
	requireInvalid(t, driver.CheckQueue(""), "queue")
	require.NoError(t, driver.CheckKind(strings.Repeat("é", 127)+"e"), "255 bytes")
	requireInvalid(t, driver.CheckKind(strings.Repeat("é", 128)), "kind") // 256 bytes, 128 letters

	err := driver.CheckQueue(strings.Repeat("long", 1<<20))
	require.Less(t, len(err.Error()), 200, "an error does not repeat four megabytes")
}

// A job runs max retries + 1 times: the attempt that leaves no retry is the last.
func TestLastAttempt(t *testing.T) {
	for _, test := range []struct {
		attempts, maxRetries, attempt int
		last                          bool
	}{
		{0, 0, 1, true},
		{0, 1, 1, false},
		{1, 1, 2, true},
		{2, 3, 3, false},
		{3, 3, 4, true},
		{4, 3, 5, true}, // max retries was lowered meanwhile
		{math.MaxInt, 3, math.MaxInt, true},
	} {
		e := pawl.Envelope{Attempts: test.attempts, MaxRetries: test.maxRetries}
		require.Equal(t, test.attempt, e.Attempt())
		require.Equal(t, test.last, e.LastAttempt(), "%d of %d", test.attempts, test.maxRetries)
	}
}

func TestEnvelopeStringNamesTheJob(t *testing.T) {
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "mail", Queue: "slow", Attempts: 2}
	require.Equal(t, "job "+e.ID.String()+" kind=mail queue=slow attempts=2", e.String())
}

// Rule: a job whose deadline has passed already is accepted; it dies at once.
func TestDeadlineInThePastIsAccepted(t *testing.T) {
	require.NoError(t, driver.CheckEnvelope((&pawl.Envelope{Kind: "k", Deadline: time.Unix(1, 0)})))
}

// Rule: unless states are given, those of a job that is still to run block another.
func TestBlockedBy(t *testing.T) {
	byDefault := pawl.Envelope{UniqueKey: "u"}
	chosen := pawl.Envelope{UniqueKey: "u", UniqueIn: []pawl.State{pawl.Leased, pawl.Completed}}
	for state, want := range map[pawl.State]struct{ byDefault, chosen bool }{
		pawl.Ready: {true, false}, pawl.Delayed: {true, false},
		pawl.Leased: {true, true}, pawl.Dead: {false, false}, pawl.Completed: {false, true},
	} {
		require.Equal(t, want.byDefault, driver.BlockedBy(&byDefault, state), state)
		require.Equal(t, want.chosen, driver.BlockedBy(&chosen, state), state)
	}
}

func TestNewFailureTruncatesItsText(t *testing.T) {
	at := time.Unix(1, 0)
	require.Equal(t, pawl.Failure{Attempt: 3, At: at, Error: "boom"}, driver.NewFailure(3, at, "boom"))
	whole := strings.Repeat("x", pawl.MaxErrorText)
	require.Equal(t, whole, driver.NewFailure(1, at, whole).Error)
	clipped := driver.NewFailure(1, at, strings.Repeat("é", 1<<20)).Error
	require.LessOrEqual(t, len(clipped), pawl.MaxErrorText)
	require.Greater(t, len(clipped), pawl.MaxErrorText-5)
	require.True(t, utf8.ValidString(clipped), "no character is torn")
	require.True(t, strings.HasSuffix(clipped, "…"), "one sees that it is not whole")
}
