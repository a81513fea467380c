package driver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// job is a condition without a method ReadsBody.
type job struct{}

func (job) Matches(*pawl.Envelope) bool { return true }

// record is a condition that says what it reads.
type record struct {
	job
	body bool
}

func (r record) ReadsBody() bool { return r.body }

// Rule: a condition gets the payload and the history of a job unless it says that it reads neither;
// a filter reads neither.
func TestReadsBody(t *testing.T) {
	require.True(t, driver.ReadsBody(job{}))
	require.True(t, driver.ReadsBody(record{body: true}))
	require.False(t, driver.ReadsBody(record{}))
	require.False(t, driver.ReadsBody(pawl.Filter{Kind: "mail"}))
}

// Rule: every function that this package takes from the root is there.
func TestRootIsComplete(t *testing.T) {
	e := &pawl.Envelope{Kind: "mail", Payload: []byte{0xc0}}
	require.NoError(t, driver.CheckEnvelope(e))
	require.ErrorIs(t, driver.CheckEnvelope(nil), pawl.ErrInvalid)
	require.ErrorContains(t, driver.CheckQueue(""), "queue")
	require.ErrorContains(t, driver.CheckKind(""), "kind")
	require.Equal(t, 3, driver.NextAttempt(2))

	p := pawl.Fixed(1)
	policy, err := driver.CheckPolicy(&p)
	require.NoError(t, err)
	require.Equal(t, pawl.Policy(p), policy)

	b := driver.AppendRecord(nil, e, 0)
	require.NoError(t, driver.CheckRecord(b))
	got, apart, err := driver.ParseRecord(b)
	require.NoError(t, err)
	require.Zero(t, apart)
	require.Equal(t, "mail", got.Kind)

	b, err = driver.EncodePayload(map[string]int{"Number": 7, "Gone": 1})
	require.NoError(t, err)
	var args struct{ Number int }
	require.ErrorIs(t, driver.DecodePayload(b, &args), pawl.ErrPayloadEncoding, "a field that the type lacks")
	require.NoError(t, driver.DecodeKnown(b, &args))
	require.Equal(t, 7, args.Number)

	l := &pawl.Lease{Envelope: e}
	require.False(t, driver.Settled(l))
	driver.MarkSettled(l)
	require.True(t, driver.Settled(l))
	require.NotEqual(t, context.Background(), driver.RunContext(context.Background(), nil, l, nil))
}
