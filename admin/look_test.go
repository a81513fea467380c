package admin_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
)

// Rule: one call that searches, or that groups dead jobs, looks at about a thousand jobs, so that it is
// short whatever the queue holds. The next one continues, and together they miss nothing.
func TestOneLookIsShort(t *testing.T) {
	q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	defer q.Close()
	ctx := t.Context()
	const jobs = 2*admin.MaxLimit + 10
	batch := make([]*pawl.Envelope, jobs)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
	}
	_, err = q.Enqueue(ctx, batch...)
	require.NoError(t, err)
	for left := jobs; left > 0; {
		leases, err := q.Fetch(ctx, pawl.Request{Max: left, Wait: pawl.WaitNot})
		require.NoError(t, err)
		settlements := make([]pawl.Settlement, len(leases))
		for i, l := range leases {
			cause := errors.New("common")
			if left--; left == 0 {
				cause = errors.New("rare")
			}
			settlements[i] = l.Abandon(pawl.ReasonPermanent, cause)
		}
		require.NoError(t, q.Settle(ctx, settlements...))
	}

	a := admin.Of(q)
	search := admin.Query{Filter: admin.Filter{Error: "rare"}, Limit: 50}
	calls, found := 0, 0
	for more := true; more; more = search.After != "" {
		page, err := a.List(ctx, search)
		require.NoError(t, err)
		calls, found, search.After = calls+1, found+len(page.Jobs), page.Next
	}
	require.Equal(t, 1, found)
	require.Equal(t, 3, calls)

	summary := admin.SummaryQuery{}
	calls, found = 0, 0
	for more := true; more; more = summary.After != "" {
		page, err := a.Summary(ctx, summary)
		require.NoError(t, err)
		for _, g := range page.Groups {
			require.LessOrEqual(t, g.Count, int64(admin.MaxLimit))
			found += int(g.Count)
		}
		calls, summary.After = calls+1, page.Next
	}
	require.Equal(t, jobs, found)
	require.Equal(t, 3, calls)
}
