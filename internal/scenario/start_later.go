package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a run with a delay sleeps until its time, and begins then, also if the program was down. Another start
// of its ID finds it and does not hurry it. A signal to it is kept.
func (suite) StartLater(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	at := k.now().Add(time.Hour)
	later := func(id string, opts ...workflow.StartOption) pawl.ID {
		h, err := f.Start(t.Context(), k.e, id, 1, opts...)
		require.NoError(t, err)
		return h.Run()
	}
	require.NoError(t, k.q.Update(t.Context(), func(tx Tx) error {
		_, err := workflow.StartTx(tx, k.e, f, "tx", 1, workflow.Delay(time.Hour))
		return err
	}))
	runs := []pawl.ID{later("delay", workflow.Delay(time.Hour)), later("at", workflow.Delay(time.Minute), workflow.At(at)),
		later("signal", workflow.Delay(time.Hour), word.WithStart("early", "")), find(k, f, "tx").Run()}
	check := func() {
		t.Helper()
		k.settle()
		for _, run := range runs {
			info := k.info(run)
			require.Equal(t, workflow.Sleeping, info.Status)
			require.True(t, at.Equal(info.Due))
			require.Empty(t, k.journal(run))
		}
	}
	check()
	require.Equal(t, runs[0], later("delay"))
	greet(k, f, "at", 1, "kept", "")
	check()
	k.pass(time.Hour - 1)
	k.jump(0)
	check()
	k.crash()
	check()
	k.pass(1)
	require.Equal(t, workflow.Done, k.info(runs[1]).Status)
	returns(k, find(k, f, "at"), []string{"kept"})
	returns(k, find(k, f, "signal"), []string{"early"})
	returns(k, find(k, f, "delay"), []string{"nothing"})
	returns(k, find(k, f, "tx"), []string{"nothing"})

	for _, opt := range []workflow.StartOption{workflow.At(k.now()), workflow.Delay(-time.Hour), workflow.At(time.Time{})} {
		h, err := f.Start(t.Context(), k.e, k.now().String(), 1, opt)
		require.NoError(t, err)
		k.settle()
		require.Equal(t, workflow.Waiting, k.info(h.Run()).Status, "it has begun")
		k.pass(time.Hour)
	}
}

// Rule: a run that has not begun follows requests: it is cancelled at once, does not begin while it is paused, and
// begins at once when it is resumed.
func (suite) StartLaterIsControlled(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	delayed := func(id string) *workflow.Handle[[]string] {
		h, err := f.Start(t.Context(), k.e, id, 1, workflow.Delay(time.Hour))
		require.NoError(t, err)
		return h
	}
	cancelled, paused, resumed := delayed("cancelled"), delayed("paused"), delayed("resumed")
	require.NoError(t, k.e.Pause(t.Context(), paused.Run()))
	require.NoError(t, k.e.Resume(t.Context(), resumed.Run()))
	require.NoError(t, cancelled.Cancel(t.Context(), "not needed"))
	k.settle()
	require.Equal(t, workflow.Cancelled, k.info(cancelled.Run()).Status)
	require.Empty(t, k.journal(cancelled.Run()))
	require.Equal(t, workflow.Waiting, k.info(resumed.Run()).Status)
	k.pass(2 * time.Hour)
	require.Equal(t, workflow.Paused, k.info(paused.Run()).Status)
	require.Empty(t, k.journal(paused.Run()))
	require.NoError(t, k.e.Resume(t.Context(), paused.Run()))
	returns(k, paused, []string{"nothing"})
}
