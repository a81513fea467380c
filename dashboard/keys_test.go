package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Rule: the page of a key names the first jobs that it blocks, and says how many there are.
func TestKeyNamesBlockedJobs(t *testing.T) {
	k := newKit(t)
	blocked := func() string {
		_, list, found := strings.Cut(k.page("key?queue=sync&name=tenant/42"), "<h2>Blocked jobs</h2>")
		require.True(t, found)
		return list
	}
	require.Contains(t, blocked(), "No job of the key is blocked.")
	var ids []pawl.ID
	for range pawl.MaxHolders + 2 {
		ids = append(ids, k.enqueue("sync", pawl.Key("tenant/42")))
	}
	list := blocked()
	require.NotContains(t, list, k.member.String(), "it may run")
	require.Contains(t, list, "10 of 12")
	for i, id := range ids {
		require.Equal(t, i < pawl.MaxHolders, strings.Contains(list, id.String()), i)
	}
}

// Rule: the page of a key that a dead job holds says so, and leads to the release of the key.
func TestKeyThatADeadJobHolds(t *testing.T) {
	k := newKit(t)
	require.NoError(t, k.q.Close())
	var err error
	k.q, err = bolt.Open(k.path, &bolt.Options{Logger: hclog.NewNullLogger(), Limits: map[string]pawl.Limits{"sync": {InOrder: pawl.OrderHold}}})
	require.NoError(t, err)
	k.restart()
	const page = "key?queue=sync&name=tenant/42"
	require.NotContains(t, k.page(page), "Release key")
	refused := k.send("POST", "release-key", url.Values{"queue": {"sync"}, "name": {"tenant/42"}})
	require.Equal(t, http.StatusConflict, refused.Code)
	require.Contains(t, refused.Body.String(), "No dead job holds key tenant/42, and it does not rest.")
	next := k.enqueue("sync", pawl.Key("tenant/42"))
	leases, err := k.q.Fetch(t.Context(), pawl.Request{Queues: []string{"sync"}, Max: 1})
	require.NoError(t, err)
	require.NoError(t, k.q.Settle(t.Context(), leases[0].Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	require.Contains(t, k.page(page), "Release key")
	require.Contains(t, k.page("keys?queue=sync"), ">held<")
	require.Contains(t, k.page("job?id="+next.String()), "A dead job holds key &#34;tenant/42&#34;, until somebody retries it")
	require.Contains(t, k.page("release-key?queue=sync&name=tenant/42"), "The dead job stays dead")
	require.Contains(t, k.post("release-key", "queue", "sync", "name", "tenant/42"), "Released.")
	leases, err = k.q.Fetch(t.Context(), pawl.Request{Queues: []string{"sync"}, Max: 1})
	require.NoError(t, err)
	require.Equal(t, next, leases[0].ID)
}

// Rule: the pages that list queues say which rest and until when. The page of queues offers to end the rest.
func TestQueueThatRests(t *testing.T) {
	k := newKit(t)
	const rests, resume = ">rests</span>", `href="resume-queue?name=email"`
	for _, page := range []string{"", "queues"} {
		require.NotContains(t, k.page(page), rests)
	}
	require.NotContains(t, k.page("queues"), resume)
	id := k.enqueue("email")
	leases, err := k.q.Fetch(t.Context(), pawl.Request{Queues: []string{"email"}, Max: 1})
	require.NoError(t, err)
	require.NoError(t, k.q.Settle(t.Context(), leases[0].Throttle(time.Hour, pawl.ThisQueue)))
	require.Equal(t, pawl.Ready, k.state(id))
	page := k.page("queues")
	require.Contains(t, page, rests+" until <time")
	require.Contains(t, page, resume)
	require.Contains(t, page, `href="pause-queue?name=email"`)
	require.Contains(t, k.page(""), rests)
	require.Contains(t, k.page("resume-queue?name=email"), "Its rest ends")

	k.post("pause-queue", "name", "email")
	require.Contains(t, k.page("queues"), ">paused</span> "+`<span class="tag warn"`+rests)
	k.post("resume-queue", "name", "email")
	for _, page := range []string{"", "queues"} {
		require.NotContains(t, k.page(page), rests)
	}
	require.NotContains(t, k.page("resume-queue?name=email"), "Its rest ends")
}

// Rule: the page of limits shows the limits that an operator has set beside those of the program. The page of a key
// shows how many jobs may wait.
func TestLimitsOfAnOperator(t *testing.T) {
	k := newKit(t)
	require.NoError(t, k.q.SetLimits(t.Context(), "sync", &pawl.Limits{RunningPerKey: 4, MaxWaiting: 500, MaxWaitingPerKey: 60}))
	page := k.page("limits")
	require.Contains(t, page, "4 running per key, at most 500 waiting, at most 60 waiting per key")
	require.Contains(t, page, "set by an operator; the app declares 1 running per key")
	require.Contains(t, k.page("key?queue=sync&name=tenant/42"), "1 of at most 60 ready and delayed jobs")
	require.NoError(t, k.q.SetLimits(t.Context(), "sync", nil))
	require.NotContains(t, k.page("limits"), "by an operator;")
}
