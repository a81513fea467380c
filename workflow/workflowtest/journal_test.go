package workflowtest_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// Rule: the journal shows which case a Select took, with the value of a signal.
func TestJournalShowsWhatASelectTook(t *testing.T) {
	type answer struct {
		Yes bool
		By  string
	}
	approved := workflow.DefineSignal[answer]("approved")
	refused := workflow.DefineSignal[bool]("refused")
	order := workflow.Define("order", func(r *workflow.Run, _ int) (bool, error) {
		var a answer
		branch := workflow.Go(r, "check", func(*workflow.Run) (string, error) { return "fine", nil })
		cases := []workflow.Case{approved.Case(&a), refused.Case(nil), workflow.After(time.Hour)}
		for range 3 {
			if _, err := workflow.Select(r, "decision", cases...); err != nil {
				return false, err
			}
		}
		_, err := workflow.Select(r, "checked", branch.Case(nil))
		return a.Yes, err
	})
	k := workflowtest.New(t, nil, order)
	run := workflowtest.Start(k, order, "1042", 0)
	workflowtest.Send(run, approved, answer{Yes: true, By: "ada"})
	workflowtest.Send(run, refused, false)
	yes, err := run.Result()
	require.NoError(t, err)
	require.True(t, yes)
	require.Equal(t, `branch check
select decision: {"case":"signal approved","value":{"By":"ada","Yes":true}}
select decision#2: {"case":"signal refused","value":false}
select decision#3, 1h0m0s: {"case":"timer"}
select checked: {"case":"branch check"}
`, run.Journal().String())

	took := run.Journal()[1]
	require.Equal(t, "signal approved", took.Selected())
	payload, err := driver.EncodePayload(answer{Yes: true, By: "ada"})
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(took.Result, payload), "the value is as it was sent")
	require.Empty(t, run.Journal()[0].Selected())
}
