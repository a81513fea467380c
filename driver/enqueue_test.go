package driver_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

func kinds(n int) []*pawl.Envelope {
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "k"}
	}
	return jobs
}

func TestCheckBatchAddsUpPayloads(t *testing.T) {
	bytes, err := driver.CheckBatch([]*pawl.Envelope{
		{Kind: "k", Payload: make([]byte, 10)}, {Kind: "k"}, {Kind: "k", Payload: make([]byte, 5)},
	}, 10)
	require.NoError(t, err)
	require.Equal(t, 15, bytes)
	bytes, err = driver.CheckBatch(nil, 10)
	require.NoError(t, err)
	require.Zero(t, bytes)
}

func TestCheckBatchRefuses(t *testing.T) {
	job, id := &pawl.Envelope{Kind: "k"}, pawl.ID{1}
	for name, test := range map[string]struct {
		jobs []*pawl.Envelope
		want error
	}{
		"nil":               {[]*pawl.Envelope{nil}, pawl.ErrInvalid},
		"nil behind a good": {[]*pawl.Envelope{job, nil}, pawl.ErrInvalid},
		"an invalid job":    {[]*pawl.Envelope{job, {}}, pawl.ErrInvalid},
		"a large payload":   {[]*pawl.Envelope{{Kind: "k", Payload: make([]byte, 11)}}, pawl.ErrPayloadTooLarge},
		"the same job":      {[]*pawl.Envelope{job, {Kind: "k"}, job}, pawl.ErrConflict},
		"the same ID":       {[]*pawl.Envelope{{Kind: "k", ID: id}, {Kind: "k"}, {Kind: "k", ID: id}}, pawl.ErrConflict},
		"10 001 jobs":       {kinds(pawl.MaxBatchJobs + 1), pawl.ErrBatchTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, err := driver.CheckBatch(test.jobs, 10)
			require.ErrorIs(t, err, test.want)
			require.Zero(t, bytes)
		})
	}
}

// Rule: the limits are of what one commit takes; a single job has that of a payload.
func TestCheckBatchAtTheLimits(t *testing.T) {
	_, err := driver.CheckBatch(kinds(pawl.MaxBatchJobs), 0)
	require.NoError(t, err)

	half := make([]byte, pawl.MaxBatchBytes/2)
	jobs := []*pawl.Envelope{{Kind: "k", Payload: half}, {Kind: "k", Payload: half}}
	bytes, err := driver.CheckBatch(jobs, len(half))
	require.NoError(t, err)
	require.Equal(t, pawl.MaxBatchBytes, bytes)
	_, err = driver.CheckBatch(append(jobs, &pawl.Envelope{Kind: "k", Payload: []byte{0}}), len(half))
	require.ErrorIs(t, err, pawl.ErrBatchTooLarge)

	same := pawl.ID{}
	_, err = driver.CheckBatch([]*pawl.Envelope{{Kind: "k", ID: same}, {Kind: "k", ID: same}}, 0)
	require.NoError(t, err, "no ID yet is no conflict")
}

// Rule: a queue fills in what is missing, and leaves what is given.
func TestAcceptFillsIn(t *testing.T) {
	now := time.Now() // with its monotonic part
	e := &pawl.Envelope{Kind: "k"}
	require.True(t, driver.Accept(e, now))
	require.False(t, e.ID.IsZero())
	require.Equal(t, pawl.Envelope{
		ID: e.ID, Kind: "k", Queue: pawl.DefaultQueue, Origin: pawl.DefaultQueue,
		Created: now.Round(0), NotBefore: now.Round(0),
	}, *e)

	created := time.Unix(1, 2)
	given := &pawl.Envelope{ID: pawl.ID{1}, Kind: "k", Queue: "here", Origin: "first", Created: created}
	require.True(t, driver.Accept(given, now))
	require.Equal(t, pawl.Envelope{
		ID: pawl.ID{1}, Kind: "k", Queue: "here", Origin: "first", Created: created, NotBefore: now.Round(0),
	}, *given)
	own := &pawl.Envelope{Kind: "k", Queue: "here"}
	driver.Accept(own, now)
	require.Equal(t, "here", own.Origin)
}

func TestAcceptSchedules(t *testing.T) {
	now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		delay     time.Duration
		notBefore time.Time
		want      time.Time
		ready     bool
	}{
		"nothing":         {0, time.Time{}, now, true},
		"in the past":     {0, now.Add(-time.Second), now, true},
		"now":             {0, now, now, true},
		"in the future":   {0, now.Add(1), now.Add(1), false},
		"delay":           {time.Second, time.Time{}, now.Add(time.Second), false},
		"delay over time": {time.Second, now.Add(time.Hour), now.Add(time.Second), false},
		"longest delay":   {math.MaxInt64, time.Time{}, now.Add(math.MaxInt64), false},
	} {
		e := &pawl.Envelope{Kind: "k", Delay: test.delay, NotBefore: test.notBefore}
		require.Equal(t, test.ready, driver.Accept(e, now), name)
		require.True(t, test.want.Equal(e.NotBefore), name)
		require.Zero(t, e.Delay, name)
	}
}

// Rule: times are stored without their monotonic part, so they compare as those that
// were read back.
func TestAcceptStripsMonotonicTime(t *testing.T) {
	now := time.Now()
	e := &pawl.Envelope{Kind: "k", NotBefore: now.Add(time.Hour), Deadline: now.Add(2 * time.Hour)}
	driver.Accept(e, now)
	require.Equal(t, now.Add(time.Hour).Round(0), e.NotBefore)
	require.Equal(t, now.Add(2*time.Hour).Round(0), e.Deadline)
	require.Equal(t, now.Round(0), e.Created)
}

func TestNotAcceptedHasItsCause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := driver.NotAccepted(ctx)
	require.ErrorIs(t, err, pawl.ErrNotAccepted)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "operation was not accepted: context canceled", err.Error())

	cause := errors.New("the user left")
	because, give := context.WithCancelCause(t.Context())
	give(cause)
	err = driver.NotAccepted(because)
	require.ErrorIs(t, err, pawl.ErrNotAccepted)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)

	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	require.ErrorIs(t, driver.NotAccepted(late), context.DeadlineExceeded)
}
