package pawl_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
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
		"headers of 8 KiB + 1":    {"headers", func(e *pawl.Envelope) { e.Headers["k"] = strings.Repeat("v", 8<<10-len("tracek1")+1) }},
	} {
		t.Run(name, func(t *testing.T) {
			e := &pawl.Envelope{Kind: "k", Queue: "q", Headers: map[string]string{"trace": "1"}}
			require.NoError(t, e.Validate(), "it is the change below that counts")
			test.spoil(e)
			requireInvalid(t, e.Validate(), test.field)
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
	}
	size := 0
	for key, value := range e.Headers {
		size += len(key) + len(value)
	}
	e.Headers[longest] = strings.Repeat("v", pawl.MaxHeaderBytes-size-len(longest))
	require.NoError(t, e.Validate())
}

func TestMinimalEnvelopeIsAccepted(t *testing.T) {
	require.NoError(t, (&pawl.Envelope{Kind: "k"}).Validate(), "a kind is all that a job needs")
}

// Names are bytes, not text: whoever writes them in another encoding may.
func TestNamesNeedNotBeUTF8(t *testing.T) {
	require.NoError(t, pawl.ValidKind("\xff\xfe"))
	require.NoError(t, pawl.ValidQueue("größer als 3 %"))
}

func TestNameChecks(t *testing.T) {
	requireInvalid(t, pawl.ValidKind(""), "kind")
	requireInvalid(t, pawl.ValidQueue(""), "queue")
	require.NoError(t, pawl.ValidKind(strings.Repeat("é", 127)+"e"), "255 bytes")
	requireInvalid(t, pawl.ValidKind(strings.Repeat("é", 128)), "kind") // 256 bytes, 128 letters

	err := pawl.ValidQueue(strings.Repeat("long", 1<<20))
	require.Less(t, len(err.Error()), 200, "an error does not repeat four megabytes")
}

// A job runs max retries + 1 times: the run that leaves none is the last.
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
