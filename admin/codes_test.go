package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/workflow"
)

// overWire returns an error as it arrives at the client.
func overWire(t *testing.T, err error) error {
	t.Helper()
	p, _ := problemOf(err)
	b, e := json.Marshal(p)
	require.NoError(t, e)
	var back *problem
	require.NoError(t, json.Unmarshal(b, &back))
	return back.err()
}

// Every sentinel that callers test for reaches the client, with the same text; no other one
// appears.
func TestErrorsMatchTheSameOnBothSides(t *testing.T) {
	all := []error{
		pawl.ErrInvalid, pawl.ErrPayloadTooLarge, pawl.ErrPayloadEncoding, pawl.ErrBatchTooLarge, pawl.ErrLeaseLost,
		pawl.ErrNotAccepted, pawl.ErrUnknownOutcome, pawl.ErrPoisoned, pawl.ErrClosed, pawl.ErrNotFound, pawl.ErrConflict,
		pawl.ErrSignature, pawl.ErrCorrupt, pawl.ErrNotEligible, pawl.ErrQueueFull,
		bolt.ErrLocked, bolt.ErrNotQueue, bolt.ErrInsecure, pawl.ErrNewerFormat, bolt.ErrOlderFormat, bolt.ErrDisk, bolt.ErrReplaced, bolt.ErrOverwritten,
		ErrUnreachable, ErrDenied, ErrNotLive, ErrBusy, ErrCancelRequested, ErrWorkflowJob, errors.ErrUnsupported,
		workflow.ErrNotFound, workflow.ErrConflict, workflow.ErrNotRunning, workflow.ErrUndeclared, workflow.ErrNoFlow, workflow.ErrTooMany, workflow.ErrTooLarge,
		schedule.ErrNotFound,
	}
	sentinels := 0
	for _, one := range all {
		eachSentinel(one, func(*driver.Sentinel) { sentinels++ })
	}
	require.Len(t, codes, len(all)-sentinels, "a code that this test does not know")
	for i, one := range all {
		other := all[(i+1)%len(all)]
		for _, err := range []error{one, fmt.Errorf("job 7: %w", one), fmt.Errorf("%w: %w", one, other), errors.Join(other, one)} {
			back := overWire(t, err)
			require.Equal(t, err.Error(), back.Error())
			for _, sentinel := range all {
				require.Equal(t, errors.Is(err, sentinel), errors.Is(back, sentinel), "%q is %q", err, sentinel)
			}
		}
	}
	require.NoError(t, overWire(t, nil))
	unknown := overWire(t, fs.ErrExist)
	require.EqualError(t, unknown, fs.ErrExist.Error())
	require.NotErrorIs(t, unknown, fs.ErrExist)
}

// Rule: the client matches the sentinels of an engine that this package does not know, also when
// they arrive through a second app.
func TestSentinelOfAnyEngineReachesTheClient(t *testing.T) {
	one, other := driver.NewSentinel("server_full", "the server is full"), driver.NewSentinel("server_old", "the server is old")
	back := overWire(t, overWire(t, errors.Join(fmt.Errorf("job 7: %w: %w", pawl.ErrConflict, one), one)))
	require.ErrorIs(t, back, one)
	require.ErrorIs(t, back, pawl.ErrConflict)
	require.NotErrorIs(t, back, other)
}

// Rule: an operation unknown to an app of an older release is not an error of the caller.
func TestUnknownPathIsUnsupported(t *testing.T) {
	require.ErrorIs(t, (&problem{Code: codePath}).err(), errors.ErrUnsupported)
	require.NotErrorIs(t, (&problem{Code: codeMethod}).err(), errors.ErrUnsupported)
}

// An invalid value keeps its field and its reason.
func TestInvalidErrorKeepsItsField(t *testing.T) {
	back := overWire(t, fmt.Errorf("job 3: %w", &pawl.InvalidError{Field: "kind", Reason: "it is empty"}))
	var invalid *pawl.InvalidError
	require.ErrorAs(t, back, &invalid)
	require.Equal(t, pawl.InvalidError{Field: "kind", Reason: "it is empty"}, *invalid)
	require.EqualError(t, back, "job 3: invalid kind: it is empty")
}

// Rule: an error that names what a queue lacks names it at the client too.
func TestLackingQueueIsNamedAtTheClient(t *testing.T) {
	back := overWire(t, fmt.Errorf("job 3: %w", driver.SupportsJobs(0, &pawl.Envelope{Priority: 1})))
	require.ErrorIs(t, back, pawl.ErrUnsupported)
	var invalid *pawl.InvalidError
	require.ErrorAs(t, back, &invalid)
	require.Equal(t, pawl.Priorities, invalid.Lacks)
}

// Rule: an error without a sentinel stays one through a second app, with the same code.
func TestCodesWithoutASentinelStay(t *testing.T) {
	for _, err := range []error{fs.ErrExist, &workflow.DeterminismError{Flow: "f", ID: "1"}} {
		once, status := problemOf(err)
		twice, again := problemOf(once.err())
		require.Equal(t, status, again)
		require.Equal(t, once.Code, twice.Code)
		require.Empty(t, twice.Also)
	}
	for _, name := range []string{codeInternal, codePath, codeMethod, codeType, codeMismatch} {
		eachSentinel((&problem{Code: name}).err(), func(*driver.Sentinel) { t.Errorf("%s is a sentinel at the client", name) })
	}
}

// Rule: the sentinel of an engine that has a code of this package does not become another error.
func TestSentinelWithACodeOfThisPackage(t *testing.T) {
	for _, name := range []string{"conflict", codeInternal, codeMismatch} {
		p, status := problemOf(driver.NewSentinel(name, "of an engine"))
		require.Equal(t, codeInternal, p.Code)
		require.Equal(t, http.StatusInternalServerError, status)
		require.NotErrorIs(t, p.err(), pawl.ErrConflict)
	}
}

// Whatever an app sends as an error is one, and never a success.
func TestProblemIsAlwaysAnError(t *testing.T) {
	for _, text := range []string{`{}`, `{"code":"not_found"}`, `{"code":"x","also":["y","not_found"]}`, `{"message":"m"}`, `{"field":"f"}`} {
		var p *problem
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		require.Error(t, p.err())
		require.NotEmpty(t, p.err().Error(), text)
	}
}
