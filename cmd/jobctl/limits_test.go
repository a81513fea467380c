package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a limit is exceeded by more than its value, or with >= by its value; numbers are sums
// over the queues, and a missing queue has no jobs. A pool restricts a number to its queues.
func TestLimits(t *testing.T) {
	s, pool := &admin.Stats{}, pawl.Limits{Pool: pawl.Pool{Name: "g.pu", Running: 4}}
	s.Queues = []pawl.QueueStats{
		{Name: "email", Counts: pawl.Counts{Ready: 3, Dead: 1}, Oldest: today.Add(-10 * time.Minute)},
		{Name: "a.b", Counts: pawl.Counts{Ready: 4, Leased: 2}, Oldest: today.Add(-time.Minute), Limits: pool},
		{Name: "idle", Counts: pawl.Counts{Leased: 1}, Limits: pool},
	}
	for text, passed := range map[string]bool{
		"ready>6":              true,
		"ready>7":              false,
		"ready>=7":             true,
		"ready>=8":             false,
		"dead>0":               true,
		"delayed>=1":           false,
		"oldest>9m":            true,
		"oldest>10m":           false,
		"oldest>=10m":          true,
		"queue:email.ready>2":  true,
		"queue:email.ready>3":  false,
		"queue:a.b.ready>3":    true,
		"queue:a.b.oldest>30s": true,
		"queue:a.b.oldest>5m":  false,
		"queue:idle.oldest>0s": false,
		"pool:g.pu.leased>=3":  true,
		"pool:g.pu.leased>3":   false,
		"pool:g.pu.ready>3":    true,
		"pool:g.pu.ready>4":    false,
		"pool:g.pu.oldest>30s": true,
		"pool:g.pu.oldest>5m":  false,
		"dead>9, ready>1":      true,
		"blocked>1":            true,
		"blocked>=3":           false,
	} {
		var ls limits
		require.NoError(t, ls.Set(text), text)
		err := ls.check(s, workflow.Counts{Blocked: 2, Failed: 9}, today)
		require.Equal(t, passed, err != nil, "%s: %v", text, err)
		if passed {
			require.Equal(t, exitDamaged, err.(*failure).code)
		}
	}
	var ls limits
	require.NoError(t, ls.Set("queue:none.ready>=1"))
	require.ErrorContains(t, ls.check(s, workflow.Counts{}, today), `there is no queue "none"`)
	ls = nil
	require.NoError(t, ls.Set("pool:email.leased>=0")) // which is a queue
	require.ErrorContains(t, ls.check(s, workflow.Counts{}, today), `no queue has the pool "email"`)
	for _, text := range []string{"", "dead", "dead>", "dead>x", "dead<3", "dead>-1", "oldest>5", "queue:.dead>1", "queue:email>1", "dead>1,", "ready>5m", "queue:email.blocked>1", "pool:.leased>1", "pool:g.pu>1", "pool:g.pu.blocked>1", "group:g.dead>1"} {
		require.Error(t, new(limits).Set(text), text)
	}
}
