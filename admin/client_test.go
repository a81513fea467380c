package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

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
		err := withid.Enqueue(t.Context(), c, job)
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

// damagedEffect returns one sound effect before a damaged one.
type damagedEffect struct{ scripted }

func (damagedEffect) Effects(context.Context, string) ([]driver.Effect, string, error) {
	return []driver.Effect{{Kind: "k", Key: "a", Until: time.Now()}}, "next", fmt.Errorf("list effects: %w", pawl.ErrCorrupt)
}

// Rule: a damaged idempotency key does not hide the sound keys of its page.
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

// Rule: an answer that would make the client ask forever is garbled.
func TestPruneThatRemovesNothing(t *testing.T) {
	c := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(versionHeader, apiVersion)
		_, _ = io.WriteString(w, `{"removed":0,"more":true}`)
	})
	_, err := c.Workflows().Prune(t.Context(), time.Now())
	require.ErrorIs(t, err, ErrUnreachable)
}
