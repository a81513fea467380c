package guide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

func readSite(r *workflow.Run, _ string) (string, error) { return Paid.Wait(r, workflow.Forever) }

// ReadSite reads a site. A site is read twice an hour, and 100 sites a minute, the first 10 at once.
var ReadSite = workflow.Define("site", readSite,
	workflow.StartRatePerKey(pawl.Rate{Starts: 2, Per: time.Hour}),
	workflow.StartRate(pawl.Rate{Starts: 100, Per: time.Minute, Burst: 10}))

// Rule: the guide's site is read twice an hour, at each crash.
func TestStartRateAtEachCrash(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, ReadSite)
		begin := k.Now()
		for _, id := range []string{"1", "2"} {
			require.NoError(t, func() error {
				_, err := ReadSite.Start(t.Context(), k.Engine(), id, "https://go.dev", workflow.Key("go.dev"))
				return err
			}())
		}
		k.Settle()
		second := workflowtest.Of(k, ReadSite, "2")
		require.Equal(t, []string{"paid"}, workflowtest.Of(k, ReadSite, "1").Info().Waits)
		require.Equal(t, "key go.dev", second.Info().Rate)
		require.False(t, second.Info().Due.Before(begin.Add(30*time.Minute)))
		k.Advance(time.Hour)
		require.Empty(t, second.Info().Rate)
		require.Equal(t, []string{"paid"}, second.Info().Waits)
	})
}
