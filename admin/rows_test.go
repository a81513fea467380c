package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/schedule"
)

// Rule: the client believes only rows that follow the name that it asked for, in the order of their names. Otherwise an
// export would go on without end.
func TestRowsAreInOrder(t *testing.T) {
	for _, names := range [][]string{{"b"}, {"a"}, {"c", "c"}, {"d", "c"}} {
		groups, schedules := new(namedRows[group.Rows]), new(namedRows[schedule.Rows])
		for _, name := range names {
			groups.Rows = append(groups.Rows, group.Rows{Name: name})
			schedules.Rows = append(schedules.Rows, schedule.Rows{Name: name})
		}
		require.ErrorContains(t, groupRows.read.check(&namedRowsRequest{"b"}, groups), "its groups are not in the order", names)
		require.ErrorContains(t, scheduleRows.read.check(&namedRowsRequest{"b"}, schedules), "its schedules are not in the order", names)
	}
	require.NoError(t, groupRows.read.check(&namedRowsRequest{"b"}, &namedRows[group.Rows]{[]group.Rows{{Name: "c"}, {Name: "d"}}}))
}
