package dashboard

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/worker"
)

// withoutPayloads makes the user a user who may not see arguments.
func (k *kit) withoutPayloads() {
	k.opts.Authorize = func(_ *http.Request, a Action) bool { return a != ViewPayload }
	d, err := New(k.d.admin, &k.opts)
	require.NoError(k, err)
	k.d = d
}

// Rule: the page of a job shows how far its last attempt was and what its attempts logged, live and stopped, but
// not to users who may not see arguments, since a handler may log those. Hostile logs appear as text.
func TestProgressAndLogs(t *testing.T) {
	k := newKit(t)
	w := worker.New(k.q, &worker.Options{Logger: hclog.NewNullLogger(), Queues: []string{"notes"}})
	worker.Handle(w, sendMail, func(ctx context.Context, job *pawl.Job[mail]) error {
		job.Progress(3, 7, "<b>files</b>")
		pawl.Log(ctx).Info("sent to "+job.Args.To, "markup", "<script>alert(1)</script>")
		return pawl.Permanent(errors.New("no address"))
	})
	id := k.enqueue("notes")
	require.NoError(t, w.Drain(t.Context(), pawl.WaitDrained))
	path := "job?id=" + id.String()
	for range 2 {
		page := k.page(path)
		for _, text := range []string{`value="3"`, "3 of 7", "&lt;b&gt;files", "sent to ada", "&lt;script&gt;alert(1)", "job logs " + id.String()} {
			require.Contains(t, page, text)
		}
		checkMarkup(t, path, page)
		k.stopped()
	}
	k.withoutPayloads()
	page := k.page(path)
	require.NotContains(t, page, "sent to ada")
	require.NotContains(t, page, "3 of 7")
}

// Rule: the page of a waiting job names the limit that it waits for, and the job that holds its key. It does
// not show the key to users who may not see arguments, since a key may contain arguments.
func TestJobWaitsForItsKey(t *testing.T) {
	q, err := bolt.Open(filepath.Join(t.TempDir(), "app.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease(), Limits: map[string]pawl.Limits{"sync": {RunningPerKey: 1}}})
	require.NoError(t, err)
	k := &kit{T: t, q: q, opts: Options{Authorize: everything, Logger: hclog.NewNullLogger()}}
	k.restart()
	first, second := k.enqueue("sync", pawl.Key("tenant/<b>")), k.enqueue("sync", pawl.Key("tenant/<b>"))
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"sync"}, Max: 1})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.Equal(t, first, leases[0].ID)
	page := k.page("job?id=" + second.String())
	require.Contains(t, page, "has 1 of 1 jobs running: "+first.String())
	require.Contains(t, page, "job why "+second.String())
	require.Contains(t, page, "tenant/&lt;b&gt;")
	k.withoutPayloads()
	page = k.page("job?id=" + second.String())
	require.Contains(t, page, "has 1 of 1 jobs running: "+first.String())
	require.NotContains(t, page, "tenant/")
	require.NoError(t, admin.Of(q).Close())
	require.NoError(t, k.d.Close())
	require.NoError(t, q.Close())
}

// Rule: the page of a job names the jobs for which it waits.
func TestJobThatWaitsForJobs(t *testing.T) {
	k := newKit(t)
	waits := k.enqueue("later", pawl.After(k.ready))
	require.Contains(t, k.page("job?id="+waits.String()), "It waits for jobs that have not ended: "+k.ready.String())
}
