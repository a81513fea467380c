package top

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: dead jobs are listed by when they became dead, the newest first.
func TestDeadJobsAreListedNewestFirst(t *testing.T) {
	dead := filter{queue: "mail"}.query(pawl.Dead)
	require.Equal(t, pawl.Filter{State: pawl.Dead, Queue: "mail", Order: pawl.OrderDied, Newest: true}, dead.Filter)
}
