package pawl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: the error of a Settle names the leases that could not be settled, each with its own
// error, and no others.
func TestSettleErrorNamesItsLeases(t *testing.T) {
	// By address: two leases of one job are two.
	job := &pawl.Envelope{Kind: "k"}
	a, b, c := &pawl.Lease{Envelope: job}, &pawl.Lease{Envelope: job}, &pawl.Lease{Envelope: job}
	lost := fmt.Errorf("job 2: %w", pawl.ErrLeaseLost)

	require.NoError(t, driver.SettleErrors(nil, nil))
	err := driver.SettleErrors([]pawl.Settlement{a.Ack(), b.Ack(), c.Nack(0, nil)}, make([]error, 3))
	require.True(t, err == nil, "not a nil *SettleError: %v", err)

	err = driver.SettleErrors([]pawl.Settlement{a.Ack(), b.Ack(), c.Nack(0, nil)}, []error{nil, lost, errInner})
	var part *pawl.SettleError
	require.ErrorAs(t, err, &part)
	require.Len(t, part.Failed, 2)
	require.Same(t, lost, part.Failed[b])
	require.Same(t, errInner, part.Failed[c])
	require.NoError(t, part.Failed[a])

	err = driver.SettleErrors([]pawl.Settlement{a.Ack(), b.Ack(), a.Nack(0, nil)}, []error{nil, nil, lost})
	require.ErrorAs(t, err, &part)
	require.Equal(t, map[*pawl.Lease]error{a: lost}, part.Failed, "one that is given twice is named, although it was settled")
}

// Rule: it matches what each of its errors matches, also through wrapping, and nothing
// else.
func TestSettleErrorMatchesWhatItNames(t *testing.T) {
	lost := fmt.Errorf("job 1: %w", pawl.ErrLeaseLost)
	settlements := []pawl.Settlement{new(pawl.Lease).Ack(), new(pawl.Lease).Release(), new(pawl.Lease).Snooze(0)}
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			err := wrap(driver.SettleErrors(settlements, []error{lost, nil, errInner}))
			require.ErrorIs(t, err, pawl.ErrLeaseLost)
			requireInner(t, err)
			require.NotErrorIs(t, err, pawl.ErrBatchTooLarge)

			err = wrap(driver.SettleErrors(settlements, []error{nil, lost, nil}))
			require.ErrorIs(t, err, pawl.ErrLeaseLost)
			require.NotErrorIs(t, err, errInner)
		})
	}
}

// Rule: a single error is told as it is, of several one and how many they are.
func TestSettleErrorText(t *testing.T) {
	lost := fmt.Errorf("job 1: %w", pawl.ErrLeaseLost)
	settlements := []pawl.Settlement{new(pawl.Lease).Ack(), new(pawl.Lease).Release(), new(pawl.Lease).Snooze(0)}
	require.EqualError(t, driver.SettleErrors(settlements, []error{nil, lost, nil}), "job 1: lease lost")
	require.EqualError(t, driver.SettleErrors(settlements, []error{lost, nil, lost}), "2 leases could not be settled, one of them: job 1: lease lost")
	require.EqualError(t, new(pawl.SettleError), "all leases were settled")
	require.Empty(t, new(pawl.SettleError).Unwrap())
}

// Rule: a Settle has at most as many settlements as a batch has jobs; one that is given
// several times counts as often.
func TestCheckSettleAtTheLimit(t *testing.T) {
	require.NoError(t, driver.CheckSettle(nil))
	all := slices.Repeat([]pawl.Settlement{{Lease: &pawl.Lease{Envelope: new(pawl.Envelope)}, Outcome: pawl.OutcomeAck}}, pawl.MaxBatchJobs)
	require.NoError(t, driver.CheckSettle(all))
	err := driver.CheckSettle(append(all, all[0]))
	require.ErrorIs(t, err, pawl.ErrBatchTooLarge)
	require.ErrorContains(t, err, "10001 leases, at most 10000")
	var part *pawl.SettleError
	require.False(t, errors.As(err, &part), "none was settled")
}

// Rule: a settlement that no method of a lease made is refused.
func TestCheckSettleRefusesWhatIsNone(t *testing.T) {
	l := &pawl.Lease{Envelope: new(pawl.Envelope)}
	require.NoError(t, driver.CheckSettle([]pawl.Settlement{l.Ack(), l.Nack(0, nil), l.Abandon(pawl.ReasonPermanent, nil), l.Release(), l.Snooze(0)}))
	var none *pawl.Lease
	for _, s := range []pawl.Settlement{{}, none.Ack(), new(pawl.Lease).Ack(), {Lease: l}, {Lease: l, Outcome: "dance"}} {
		require.ErrorIs(t, driver.CheckSettle([]pawl.Settlement{l.Ack(), s}), pawl.ErrInvalid)
	}
}
