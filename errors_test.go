package pawl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: the error of an ack names the leases that could not be acked, each with its own
// error, and no others.
func TestAckErrorNamesItsLeases(t *testing.T) {
	// By address: two leases of one job are two.
	job := &pawl.Envelope{Kind: "k"}
	a, b, c := &pawl.Lease{Envelope: job}, &pawl.Lease{Envelope: job}, &pawl.Lease{Envelope: job}
	lost := fmt.Errorf("job 2: %w", pawl.ErrLeaseLost)

	require.NoError(t, pawl.AckErrors(nil, nil))
	err := pawl.AckErrors([]*pawl.Lease{a, b, c}, make([]error, 3))
	require.True(t, err == nil, "not a nil *AckError: %v", err)

	err = pawl.AckErrors([]*pawl.Lease{a, b, c}, []error{nil, lost, errInner})
	var part *pawl.AckError
	require.ErrorAs(t, err, &part)
	require.Len(t, part.Failed, 2)
	require.Same(t, lost, part.Failed[b])
	require.Same(t, errInner, part.Failed[c])
	require.NoError(t, part.Failed[a])

	err = pawl.AckErrors([]*pawl.Lease{a, b, a}, []error{nil, nil, lost})
	require.ErrorAs(t, err, &part)
	require.Equal(t, map[*pawl.Lease]error{a: lost}, part.Failed, "one that is given twice is named, although it was acked")
}

// Rule: it matches what each of its errors matches, also through wrapping, and nothing
// else.
func TestAckErrorMatchesWhatItNames(t *testing.T) {
	lost := fmt.Errorf("job 1: %w", pawl.ErrLeaseLost)
	leases := []*pawl.Lease{new(pawl.Lease), new(pawl.Lease), new(pawl.Lease)}
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			err := wrap(pawl.AckErrors(leases, []error{lost, nil, errInner}))
			require.ErrorIs(t, err, pawl.ErrLeaseLost)
			requireInner(t, err)
			require.NotErrorIs(t, err, pawl.ErrBatchTooLarge)

			err = wrap(pawl.AckErrors(leases, []error{nil, lost, nil}))
			require.ErrorIs(t, err, pawl.ErrLeaseLost)
			require.NotErrorIs(t, err, errInner)
		})
	}
}

// Rule: a single error is told as it is, of several one and how many they are.
func TestAckErrorText(t *testing.T) {
	lost := fmt.Errorf("job 1: %w", pawl.ErrLeaseLost)
	leases := []*pawl.Lease{new(pawl.Lease), new(pawl.Lease), new(pawl.Lease)}
	require.EqualError(t, pawl.AckErrors(leases, []error{nil, lost, nil}), "job 1: lease lost")
	require.EqualError(t, pawl.AckErrors(leases, []error{lost, nil, lost}), "2 leases could not be acked, one of them: job 1: lease lost")
	require.EqualError(t, new(pawl.AckError), "all leases were acked")
	require.Empty(t, new(pawl.AckError).Unwrap())
}

// Rule: an ack has at most as many leases as a batch has jobs; one that is given
// several times counts as often.
func TestCheckAckAtTheLimit(t *testing.T) {
	require.NoError(t, pawl.CheckAck(nil))
	all := slices.Repeat([]*pawl.Lease{new(pawl.Lease)}, pawl.MaxBatchJobs)
	require.NoError(t, pawl.CheckAck(all))
	err := pawl.CheckAck(append(all, all[0]))
	require.ErrorIs(t, err, pawl.ErrBatchTooLarge)
	require.ErrorContains(t, err, "10001 leases, at most 10000")
	var part *pawl.AckError
	require.False(t, errors.As(err, &part), "none was acked")
}
