package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Rule: a request that is large and has a large answer takes one place, not two, so those that
// hold all places never wait for one another.
func TestLargeRequestTakesOnePlace(t *testing.T) {
	var inside sync.WaitGroup
	inside.Add(largeBodies)
	a := &scripted{do: func(_ context.Context, _ Action, ids []pawl.ID) ([]error, error) {
		inside.Done()
		inside.Wait()
		errs := make([]error, len(ids))
		for i, id := range ids {
			errs[i] = fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
		}
		return errs, nil
	}}
	h := newHandler(a, &HandlerOptions{NoAuth: true}, context.Background())
	h.lists = newGate("lists", largeBodies) // what is tried is the other gate
	s := httptest.NewServer(h)
	defer s.Close()
	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = `"` + pawl.NewID(time.Now()).String() + `"`
	}
	body := `{"verb":"retry","dry_run":true,"ids":[` + strings.Join(ids, ",") + `]}`
	statuses := make([]int, largeBodies)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			r, err := http.Post(s.URL+"/v1/jobs/dry-run", "application/json", strings.NewReader(body))
			if err == nil {
				statuses[i] = r.StatusCode
				_ = r.Body.Close()
			}
		})
	}
	all.Wait()
	for _, status := range statuses {
		require.Equal(t, http.StatusOK, status)
	}
}

// Rule: when a server in front of the app gives up, the outcome of a change is unknown, and the
// jobs have their IDs.
func TestGatewayThatGivesUp(t *testing.T) {
	app := handlerFor(t, Of(openLive(t)), nil)
	for _, status := range []int{http.StatusBadGateway, http.StatusGatewayTimeout} {
		c := hostile(t, func(w http.ResponseWriter, r *http.Request) {
			app.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(status)
		})
		job := &pawl.Envelope{Kind: "k"}
		err := c.Enqueue(t.Context(), job)
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
		require.False(t, job.ID.IsZero())
	}
}

// Rule: a context that ends while the client waits for a busy app gives the error of the context.
func TestBusyUntilTheContextEnds(t *testing.T) {
	s := httptest.NewServer(handlerFor(t, &scripted{list: func(context.Context, Query) (Page, error) { return Page{}, ErrBusy }}, nil))
	defer s.Close()
	c, err := Dial(t.Context(), s.URL, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.List(ctx, Query{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// damagedEffect has one sound effect before a damaged one.
type damagedEffect struct{ scripted }

func (damagedEffect) Effects(context.Context, string) ([]bolt.Effect, string, error) {
	return []bolt.Effect{{Kind: "k", Key: "a", Until: time.Now()}}, "next", fmt.Errorf("list effects: %w", pawl.ErrCorrupt)
}

// Rule: a damaged idempotency key hides none of the sound ones of its page.
func TestEffectsBesideADamagedOne(t *testing.T) {
	s := httptest.NewServer(handlerFor(t, &damagedEffect{}, nil))
	defer s.Close()
	c, err := Dial(t.Context(), s.URL, nil)
	require.NoError(t, err)
	effects, next, err := c.Effects(t.Context(), "")
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.Equal(t, "next", next)
	require.Len(t, effects, 1)
}

// Rule: the names of hosts are compared without case.
func TestHostInAnotherCase(t *testing.T) {
	h := handlerFor(t, &scripted{}, &HandlerOptions{Hosts: []string{"App.Example.com"}})
	r := httptest.NewRequest(http.MethodGet, "/v1/stats", nil)
	r.Host = "App.Example.com"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
}

// Rule: an answer that would have the client ask for ever is garbled.
func TestPruneThatRemovesNothing(t *testing.T) {
	c := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(versionHeader, apiVersion)
		_, _ = io.WriteString(w, `{"removed":0,"more":true}`)
	})
	_, err := c.Workflows().Prune(t.Context(), time.Now())
	require.ErrorIs(t, err, ErrUnreachable)
}

// Rule: an action that stops after a part of its jobs has an unknown outcome; one that stops
// before the first has not.
func TestActionThatStopsInTheMiddle(t *testing.T) {
	ids := []pawl.ID{pawl.NewID(time.Now()), pawl.NewID(time.Now())}
	do := func(errs ...error) error {
		_, err := Action{Verb: Forward}.on(ids, MaxIDs, func(*pawl.Change, pawl.Condition, []pawl.ID) ([]error, error) { return errs, nil })
		return err
	}
	require.NoError(t, do(nil, pawl.ErrNotFound))
	for _, end := range []error{pawl.ErrClosed, pawl.ErrPoisoned, pawl.ErrNotAccepted} {
		require.ErrorIs(t, do(nil, end), pawl.ErrUnknownOutcome)
		require.ErrorIs(t, do(nil, end), end)
		require.NotErrorIs(t, do(end, end), pawl.ErrUnknownOutcome)
	}
}
