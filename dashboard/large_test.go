package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// large has more jobs than a page can read. It counts what it reads, in virtual time.
type large struct {
	admin.Admin
	match        int // jobs of a read that match
	read, judged int
	searches     int
}

func (a *large) FindIDs(context.Context, string, string) (ids []pawl.ID, next string, err error) {
	time.Sleep(4 * time.Millisecond)
	a.searches++
	for range a.match {
		ids = append(ids, pawl.NewID(time.Now()))
	}
	return ids, "more", nil
}

func (a *large) List(_ context.Context, q admin.Query) (admin.Page, error) {
	time.Sleep(4 * time.Millisecond)
	a.read += admin.MaxLimit
	page := admin.Page{Next: "more"}
	for range min(a.match, q.Limit) {
		page.Jobs = append(page.Jobs, pawl.Listed{Job: &pawl.Envelope{ID: pawl.NewID(time.Now())}})
	}
	return page, nil
}

func (a *large) Do(_ context.Context, _ admin.Action, ids ...pawl.ID) ([]error, error) {
	time.Sleep(time.Duration(len(ids)) * 40 * time.Microsecond)
	a.judged += len(ids)
	return make([]error, len(ids)), nil
}

func (a *large) Workflows() admin.Workflows { return largeRuns{a.Admin.Workflows(), a} }

type largeRuns struct {
	admin.Workflows
	of *large
}

func (a largeRuns) List(_ context.Context, q admin.WorkflowQuery) (page workflow.Listing, err error) {
	time.Sleep(4 * time.Millisecond)
	a.of.read += 4 * admin.MaxLimit
	for range min(a.of.match, q.Limit) {
		page.Runs = append(page.Runs, workflow.Info{Status: workflow.Waiting})
	}
	page.Next = "more"
	return page, nil
}

func (a largeRuns) Verify(context.Context, pawl.ID) error {
	time.Sleep(100 * time.Microsecond)
	a.of.judged++
	return nil
}

// Rule: however many jobs and runs there are, a list, the page before a change, and the comparison of runs with the
// code read for at most lookTime, and what one more read and one more portion of a dry run take. The page before a
// change says how far it came.
func TestPagesOfALargeQueueReadLittle(t *testing.T) {
	const reads = 8 // of 4 ms each; the last begins before the time is over
	synctest.Test(t, func(t *testing.T) {
		q, d := empty(t)
		get := func(path string, match int) (string, *large) {
			a := &large{Admin: admin.Of(q), match: match}
			d.admin = a
			w, began := httptest.NewRecorder(), time.Now()
			d.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/"+path, nil))
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
			require.Less(t, time.Since(began), lookTime+15*time.Millisecond, path)
			require.LessOrEqual(t, a.read, 4*reads*admin.MaxLimit, path)
			require.LessOrEqual(t, a.judged, 3*tryPortion, path)
			return w.Body.String(), a
		}
		_, a := get("jobs?error=quota", 0)
		require.Equal(t, reads*admin.MaxLimit, a.read)
		_, a = get("runs?status=failed", 0)
		require.Equal(t, 4*reads*admin.MaxLimit, a.read)
		for _, verb := range []string{"retry?", "delete?", "cancel?", "run-now?", "retry?group=quota&"} {
			page, _ := get(verb+"select=all", 0)
			require.Contains(t, page, "At least 0 match", verb)
		}
		page, _ := get("cancel?select=all", admin.MaxLimit)
		require.Contains(t, page, "At least 4000 match")
		require.Contains(t, page, "This page tried the change on the first 500.")
		page, a = get("job?id=cd2b", 0)
		require.Contains(t, page, "No job has an ID that begins or ends with cd2b, as far as this page searched.")
		require.Contains(t, page, "job?after=more&amp;id=cd2b")
		require.Equal(t, reads, a.searches)
		page, _ = get("job?id=cd2b&after=more", 1)
		require.Contains(t, page, "8 jobs have an ID")
		page, _ = get("verify", pageSize)
		require.Contains(t, page, "200 match, <b>0</b> do not, of those that this page compared.")
		require.Contains(t, page, "verify?all=1")
		require.NoError(t, d.Close())
		require.NoError(t, q.Close())
	})
}
