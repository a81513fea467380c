package families

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/client"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}

// Rule: each tick of schedules that two processes fire has one decision, and each decision its job.
func TestSchedule(t *testing.T) {
	need.Server(t, Schedule.Missing())
	r := Schedule.Run(t.Context(), harness.Plan{Goal: 6, Seed: 1})
	for _, v := range r.First {
		t.Errorf("seed %d: %v", v.Seed, v.Err)
	}
	require.GreaterOrEqual(t, r.Tried, 6)
}

// Rule: every family finds an app that commits the effect of a job and its ack in two transactions. The families that
// kill find an app that takes an enqueue for done before the commit. All find an app that acks a job and forgets that
// it did. The family that kills clients finds an app that enqueues the jobs of a key in another order than it says.
func TestPlantedFaultsAreFound(t *testing.T) {
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("takes minutes; set PAWL_SLOW_TESTS=1 to run it")
	}
	need.Server(t, missing())
	folder, err := os.MkdirTemp("", "pawl-")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	t.Setenv(harness.MemoryVariable, folder) // for the files of the tries that fail
	defer func() { plant = "" }()
	for _, test := range []struct {
		fault    client.Fault
		families []*harness.Family
		says     string
	}{
		{client.Forget, disturbed, "it is lost|it is completed, and nobody acked it"},
		{client.Split, disturbed, "took effect|it ended"},
		{client.Hasty, []*harness.Family{Kill, Server}, "it is lost|it is missing"},
		{client.Mix, []*harness.Family{Kill}, "had its turn before"},
	} {
		for _, f := range test.families {
			t.Run(string(test.fault)+"/"+f.Name, func(t *testing.T) {
				plant = test.fault
				r := f.Run(t.Context(), harness.Plan{Goal: f.Nightly, Seed: 1, First: true})
				require.NotEmpty(t, r.First)
				require.NotErrorIs(t, r.First[0].Err, harness.ErrUntried)
				require.Regexp(t, test.says, r.First[0].Err.Error())
			})
		}
	}
}
