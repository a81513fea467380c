package scenario

import (
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a start of the app lets the runs of many keys begin in few commits, and makes none if nothing is to be done.
func (suite) ManyKeysAreAdmittedAtOnce(t *testing.T, k *kit) {
	const keys = 30
	f := desk(k, workflow.MaxOpenPerKey(1))
	k.open(f)
	var names []string
	for n := range keys {
		names = append(names, fmt.Sprint("k", n), fmt.Sprint("k", n))
	}
	queueUp(k, f, names...)
	require.Len(t, k.effects(), keys)
	commits := func(limit int) int {
		before, err := k.q.Commits(t.Context())
		require.NoError(t, err)
		e := workflow.Open(k.q, &workflow.Options{Build: "1", Codec: k.codec, Logger: hclog.NewNullLogger()})
		w := worker.New(k.q, &worker.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, e.Handle(t.Context(), w, desk(k, workflow.MaxOpenPerKey(limit))))
		after, err := k.q.Commits(t.Context())
		require.NoError(t, err)
		return after - before
	}
	k.close()
	k.slots = -1
	k.open(f)
	require.Zero(t, commits(1))
	require.LessOrEqual(t, commits(2), 2)
	k.close()
	k.slots = 8
	k.open(desk(k, workflow.MaxOpenPerKey(2)))
	k.settle()
	require.Len(t, k.effects(), 2*keys)
}
