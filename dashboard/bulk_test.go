package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// slow is a queue with many dead jobs whose calls take long, in virtual time.
type slow struct {
	admin.Admin
	list, do time.Duration // of one call
	fails    int           // the call of Do that fails; 0 for none
	calls    int           // of Do
}

// wait takes some time, or returns the error of the context that ends before.
func (a *slow) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (a *slow) List(ctx context.Context, q admin.Query) (admin.Page, error) {
	page := admin.Page{Next: "more"}
	for range q.Limit {
		page.Jobs = append(page.Jobs, pawl.Listed{Job: &pawl.Envelope{ID: pawl.NewID(time.Now())}})
	}
	return page, a.wait(ctx, a.list)
}

func (a *slow) Do(ctx context.Context, _ admin.Action, ids ...pawl.ID) ([]error, error) {
	if a.calls++; a.calls == a.fails {
		return nil, errors.New("the app went away")
	}
	return make([]error, len(ids)), a.wait(ctx, a.do)
}

// Rule: a change of many jobs that runs out of time, or fails before its end, says on its page and in the log how many
// jobs it changed. A change that has changed nothing fails.
func TestChangesThatEndEarlySayWhatTheyDid(t *testing.T) {
	for name, c := range map[string]struct {
		queue  slow
		status int
		says   []string
	}{
		"slow search and change": {slow{list: 1400 * time.Millisecond, do: 3 * time.Second}, http.StatusOK,
			[]string{"4000 jobs retried.", "It ran out of time before the other 6000 jobs. Repeat it for the rest."}},
		"one portion takes all the time that is left": {slow{do: 24 * time.Second}, http.StatusOK,
			[]string{"1000 jobs retried.", "Then it failed, so some of the other 9000 jobs may have been retried too: context deadline exceeded."}},
		"the app goes away": {slow{fails: 3}, http.StatusOK,
			[]string{"2000 jobs retried.", "Then it failed, so some of the other 8000 jobs may have been retried too: the app went away."}},
		"the app is away": {slow{fails: 1}, http.StatusInternalServerError, []string{"the app went away"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, d := empty(t)
				log := new(record)
				c.queue.Admin = admin.Of(q)
				d.admin, d.opts.Logger, d.log = &c.queue, log, log
				d.watch.next = time.Now().Add(time.Hour) // the request reads no statistics before the change
				r := httptest.NewRequest("POST", "http://localhost/retry", strings.NewReader(url.Values{"select": {"all"}}.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				w := httptest.NewRecorder()
				d.ServeHTTP(w, r)
				require.NoError(t, d.Close())
				require.NoError(t, q.Close())
				require.Equal(t, c.status, w.Code, w.Body)
				logged := strings.Join(log.lines, "\n")
				for _, text := range c.says {
					require.Contains(t, w.Body.String(), text)
					require.Contains(t, logged, text)
				}
				require.NotContains(t, w.Body.String(), ">done</span>")
			})
		})
	}
}
