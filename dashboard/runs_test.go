package dashboard

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Rule: only a user who may see payloads sees the key of a run, also where a run waits for its key. Everybody sees that
// it waits for a key, and its attributes.
func TestKeysOfRunsAreProtected(t *testing.T) {
	k := newKit(t)
	wait := func(r *workflow.Run, _ string) (bool, error) { return approved.Wait(r, time.Hour) }
	limited := workflow.Define("limited", wait, workflow.MaxOpenPerKey(1))
	rated := workflow.Define("rated", wait, workflow.StartRatePerKey(pawl.Rate{Starts: 1, Per: time.Hour}))
	e := workflow.Open(k.q, nil)
	require.NoError(t, e.Handle(t.Context(), k.w, limited, rated))
	var waits []string // the runs that have not begun
	for _, flow := range []*workflow.Flow[string, bool]{limited, rated} {
		for _, id := range []string{"1", "2"} {
			h, err := flow.Start(t.Context(), e, id, "", workflow.Key("tenant/42"), workflow.Attributes(map[string]string{"region": "eu"}))
			require.NoError(t, err)
			if k.drain(); id == "2" {
				waits = append(waits, h.Run().String())
			}
		}
	}
	pages := []string{"runs", "run?id=" + waits[0], "run?id=" + waits[1], "job?id=" + waits[0], "job?id=" + waits[1]}
	for _, path := range pages {
		require.Contains(t, k.page(path), "key tenant/42", path)
	}
	require.Contains(t, k.page(pages[1]), "<dt>Key</dt>")

	k.opts.Authorize = func(_ *http.Request, a Action) bool { return a == View }
	k.restart()
	for _, path := range pages {
		page := k.page(path)
		require.NotContains(t, page, "tenant/42", path)
		require.Contains(t, page, "key (hidden)", path)
	}
	require.NotContains(t, k.page(pages[1]), "<dt>Key</dt>")
	require.Contains(t, k.page(pages[1]), "<dt>region</dt>")
}
