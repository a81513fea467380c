package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// wide is a value of the first build. narrow is the same in a build that removed a field.
type (
	wide   struct{ A, B int }
	narrow struct{ A int }
)

// sumOf waits a night between its step and its end. Its input, its step and its signal have
// type V.
func sumOf[V any](name string, opts ...workflow.Option) *workflow.Flow[V, V] {
	signal := workflow.DefineSignal[V]("more")
	return workflow.Define(name, func(r *workflow.Run, in V) (V, error) {
		if _, err := workflow.Step(r, "see", func(context.Context) (V, error) { return in, nil }); err != nil {
			return in, err
		}
		if err := workflow.Sleep(r, "night", 12*time.Hour); err != nil {
			return in, err
		}
		return signal.Wait(r, workflow.Forever)
	}, opts...)
}

// Rule: a value of a run with a field that its type lacks is never read without that field. The
// run is blocked with an error that names the field, nothing is lost, and it continues under a
// build that has the field, or whose flow has AllowUnknownFields.
func (suite) RunKeepsFieldsThatATypeLacks(t *testing.T) {
	for name, last := range map[string]workflow.Definition{
		"with the field":     sumOf[wide]("sum"),
		"AllowUnknownFields": sumOf[narrow]("sum", workflow.AllowUnknownFields()),
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := sumOf[wide]("sum")
			k.open(f)
			h := startAndSettle(k, f, "1", wide{1, 2})
			k.restart("2", sumOf[narrow]("sum"))
			k.pass(13 * time.Hour)
			info := k.info(h.Run())
			require.Equal(t, workflow.Blocked, info.Status)
			require.Contains(t, info.Error, `no field "B"`)
			require.Contains(t, info.Error, "AllowUnknownFields")

			k.restart("3", last)
			k.pass(time.Hour)
			payload, err := driver.EncodePayload(map[string]int{"A": 3, "B": 4})
			require.NoError(t, err)
			require.NoError(t, k.e.Send(t.Context(), h.Run(), "more", payload, ""))
			k.settle()
			require.Equal(t, workflow.Done, k.info(h.Run()).Status)
		})
	}
}

// Rule: a signal with a field that its type lacks blocks the run, and is not lost.
func (suite) SignalWithAFieldThatItsTypeLacks(t *testing.T, k *kit) {
	f := sumOf[narrow]("sum")
	k.open(f)
	h := start(k, f, "1", narrow{1})
	k.pass(13 * time.Hour)
	payload, err := driver.EncodePayload(map[string]int{"a": 3})
	require.NoError(t, err)
	require.NoError(t, k.e.Send(t.Context(), h.Run(), "more", payload, ""))
	k.settle()
	info := k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `no field "a"`)

	k.restart("2", sumOf[narrow]("sum", workflow.AllowUnknownFields()))
	k.settle()
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
}

// Rule: a caller whose type lacks a field of the result gets an error, and no part of the
// result.
func (suite) ResultWithAFieldThatItsTypeLacks(t *testing.T, k *kit) {
	result := func(*workflow.Run, int) (wide, error) { return wide{1, 2}, nil }
	f := workflow.Define("sum", result)
	k.open(f)
	startAndSettle(k, f, "1", 0)
	lacks := func(*workflow.Run, int) (narrow, error) { return narrow{}, nil }
	_, err := outcome(k, find(k, workflow.Define("sum", lacks), "1"))
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
	require.ErrorContains(t, err, `no field "B"`)
	returns(k, find(k, workflow.Define("sum", lacks, workflow.AllowUnknownFields()), "1"), narrow{1})
}
