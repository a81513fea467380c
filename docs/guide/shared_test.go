package guide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

var Warehouse = workflow.Define("warehouse", func(r *workflow.Run, trucks []string) ([]string, error) {
	ramps := workflow.Share(r, "ramps", 2)
	name := func(truck string) string { return truck }
	return workflow.Each(r, "truck", trucks, name, len(trucks), func(r *workflow.Run, truck string) (string, error) {
		err := ramps.Wait(r, "a free ramp", func(free *int) bool {
			if *free == 0 {
				return false
			}
			*free--
			return true
		})
		if err != nil {
			return "", err
		}
		if err := workflow.Sleep(r, "unload "+truck, time.Hour); err != nil {
			return "", err
		}
		return truck, ramps.Change(r, func(free *int) { *free++ })
	})
})

// Rule: branches share a value, and wait for it, whatever crashes.
func TestShared(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, Warehouse)
		began := k.Now()
		trucks := []string{"a", "b", "c", "d", "e"}
		out, err := workflowtest.Start(k, Warehouse, "1", trucks).Result()
		require.NoError(t, err)
		require.Equal(t, trucks, out)
		require.Equal(t, 3*time.Hour, k.Now().Sub(began), "two at a time")
	})
}
