package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: the client returns outcomes of an enqueue only from an answer that fits the jobs: one for
// each, in their order, with the job's own ID unless another job has its unique key. After any
// other answer the outcome is unknown, and the client returns the IDs that it sent.
func TestEnqueueBelievesOnlyWhatFitsTheJobs(t *testing.T) {
	a, b, other := pawl.NewID(time.Now()), pawl.NewID(time.Now()), pawl.NewID(time.Now())
	one := func(id fmt.Stringer, more string) string { return fmt.Sprintf(`{"id":"%s"%s}`, id, more) }
	none := pawl.ID{}
	for _, answer := range []string{
		`{}`, `{"jobs":null}`, `{"jobs":[]}`, `{"jobs":[null,null]}`, `{"jobs":[{},{}]}`, `{"jobs":[{"id":"x"},{"id":"y"}]}`,
		`{"jobs":[` + one(a, "") + `]}`,
		`{"jobs":[` + one(a, "") + `,` + one(b, "") + `,` + one(other, "") + `]}`,
		`{"jobs":[` + one(b, "") + `,` + one(a, "") + `]}`,
		`{"jobs":[` + one(a, "") + `,` + one(a, "") + `]}`,
		`{"jobs":[` + one(a, "") + `,` + one(none, "") + `]}`,
		`{"jobs":[` + one(a, "") + `,` + one(other, "") + `]}`,
		`{"jobs":[` + one(a, "") + `,` + one(other, `,"existing":true`) + `]}`,
		`{"jobs":[` + one(a, "") + `,` + one(b, "") + `]`,
	} {
		done, err := hostile(t, with("1", 200, answer)).Enqueue(t.Context(), &pawl.Envelope{ID: a, Kind: "k"}, &pawl.Envelope{ID: b, Kind: "k"})
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome, answer)
		require.ErrorIs(t, err, ErrUnreachable, answer)
		require.Equal(t, []pawl.Enqueued{{ID: a}, {ID: b}}, done, answer)
	}
	for conflict, fits := range map[pawl.Conflict]map[string]bool{
		pawl.UseExisting: {"": false, `,"existing":true`: true},
		pawl.Replace:     {"": true, `,"existing":true`: false},
		pawl.Reject:      {"": false, `,"existing":true`: false},
	} {
		for more, fits := range fits {
			c := hostile(t, with("1", 200, `{"jobs":[`+one(other, more)+`]}`))
			done, err := c.Enqueue(t.Context(), &pawl.Envelope{ID: a, Kind: "k", UniqueKey: "key", OnConflict: conflict})
			switch {
			case fits:
				require.NoError(t, err)
				require.Equal(t, []pawl.Enqueued{{ID: other, Existing: more != ""}}, done)
				continue
			case conflict == pawl.Replace:
				require.Equal(t, []pawl.Enqueued{{}}, done, "the job may have the ID of the one that it replaced")
			default:
				require.Equal(t, []pawl.Enqueued{{ID: a}}, done)
			}
			require.ErrorIs(t, err, pawl.ErrUnknownOutcome, "%d %s", conflict, more)
		}
	}
}

// Rule: a change has an unknown outcome after every answer that does not fit it, and after an
// answer of an app that broke off, because the app may have carried it out. A refusal is known.
func TestChangeWithoutAnAnswerThatFits(t *testing.T) {
	id, other := pawl.NewID(time.Now()), pawl.NewID(time.Now())
	broken := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for answer, handler := range map[string]http.HandlerFunc{
		"garbled":         with("1", 200, "<html>"),
		"another version": with("2", 200, "{}"),
		"of nobody":       with("", 200, "{}"),
		"without reason":  with("1", 500, ""),
		"cut":             broken,
		"of another job":  with("1", 200, `{"errors":[],"jobs":[{"id":"`+other.String()+`"}],"reaped":-1,"removed":-1,"run":"00000000-0000-0000-0000-000000000000"}`),
	} {
		c := hostile(t, handler)
		for name, change := range changes(id) {
			if answer == "of another job" && strings.HasPrefix(name, "plain ") {
				continue
			}
			require.ErrorIs(t, change(t.Context(), c), pawl.ErrUnknownOutcome, "%s: %s", answer, name)
		}
	}
	for _, refusal := range []http.HandlerFunc{with("", 404, ""), with("", 403, ""), with("2", 404, "{}"), with("1", 409, `{"error":{"code":"conflict"}}`)} {
		c := hostile(t, refusal)
		for name, change := range changes(id) {
			err := change(t.Context(), c)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, name)
		}
	}
}

// changes are all changes of a client. The answer to a plain one has no content.
func changes(id pawl.ID) map[string]func(context.Context, *client) error {
	return map[string]func(context.Context, *client) error{
		"do": func(ctx context.Context, c *client) error {
			_, err := c.Do(ctx, Action{Verb: Retry}, id)
			return err
		},
		"enqueue": func(ctx context.Context, c *client) error {
			_, err := c.Enqueue(ctx, &pawl.Envelope{ID: id, Kind: "k"})
			return err
		},
		"plain restore": func(ctx context.Context, c *client) error {
			return c.Restore(ctx, []*pawl.Envelope{{ID: id, Kind: "k"}}, nil)
		},
		"reap": func(ctx context.Context, c *client) error {
			_, err := c.Reap(ctx)
			return err
		},
		"do runs": func(ctx context.Context, c *client) error {
			_, err := c.Workflows().Do(ctx, RunAction{Verb: Cancel}, id)
			return err
		},
		"fork": func(ctx context.Context, c *client) error {
			_, err := c.Workflows().Fork(ctx, id, "step", "new")
			return err
		},
		"prune": func(ctx context.Context, c *client) error {
			_, err := c.Workflows().Prune(ctx, time.Now())
			return err
		},
		"plain pause":  func(ctx context.Context, c *client) error { return c.Pause(ctx, "q") },
		"plain resume": func(ctx context.Context, c *client) error { return c.Resume(ctx, "q") },
		"plain signal": func(ctx context.Context, c *client) error {
			return c.Workflows().Signal(ctx, id, "s", []byte{0xc0}, "")
		},
	}
}

// Rule: a change whose context ends after it was sent has an unknown outcome, and the error of the
// context too. One that was not sent yet is not accepted.
func TestContextThatEndsDuringAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPiped(t, &scripted{
			enqueue: func(ctx context.Context, _ []*pawl.Envelope) ([]pawl.Enqueued, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			do: func(context.Context, Action, []pawl.ID) ([]error, error) { return nil, ErrBusy },
		}, 4).client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		id := pawl.NewID(time.Now())
		done, err := c.Enqueue(ctx, &pawl.Envelope{ID: id, Kind: "k"})
		require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []pawl.Enqueued{{ID: id}}, done)

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Do(ctx, Action{Verb: Retry}, id)
		require.ErrorIs(t, err, pawl.ErrNotAccepted)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
	})
}

// Rule: a change has an unknown outcome when the app panics over it.
func TestAppThatPanicsOverAChange(t *testing.T) {
	c := hostile(t, handlerFor(t, &scripted{
		enqueue: func(context.Context, []*pawl.Envelope) ([]pawl.Enqueued, error) { panic("after the commit") },
		list:    func(context.Context, Query) (Page, error) { panic("over a list") },
	}, nil).ServeHTTP)
	_, err := c.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	_, err = c.List(t.Context(), Query{})
	require.ErrorContains(t, err, "panicked")
	require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
}

// Rule: a client rejects a page with more elements than it requested, one that continues where it
// began, which would never end, and the answer about another job.
func TestPagesThatDoNotFit(t *testing.T) {
	id, other := pawl.NewID(time.Now()), pawl.NewID(time.Now())
	many := func(n int, one string) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
	job := fmt.Sprintf(`{"id":"%s"}`, other)
	effect := `{"kind":"k","key":"a"}`
	reads := map[string]struct {
		read    func(*client) error
		answers []string
	}{
		"list": {func(c *client) error {
			_, err := c.List(t.Context(), Query{Limit: 2, After: "here"})
			return err
		}, []string{`{"jobs":` + many(3, job) + `}`, `{"jobs":[],"next":"here"}`}},
		"default list": {func(c *client) error {
			_, err := c.List(t.Context(), Query{})
			return err
		}, []string{`{"jobs":` + many(DefaultLimit+1, job) + `}`}},
		"summary": {func(c *client) error {
			_, err := c.Summary(t.Context(), SummaryQuery{After: "here"})
			return err
		}, []string{`{"groups":` + many(maxPageGroups+MaxLimit+1, `{"key":"a","count":1}`) + `}`, `{"groups":[{"count":0}]}`, `{"damaged":-1}`, `{"next":"here"}`}},
		"job": {func(c *client) error {
			_, err := c.Job(t.Context(), id)
			return err
		}, []string{`null`, job}},
		"find": {func(c *client) error {
			_, _, err := c.FindIDs(t.Context(), "abcd", "here")
			return err
		}, []string{`{"ids":` + many(MaxFound+1, `"`+other.String()+`"`) + `}`, `{"next":"here"}`}},
		"effects": {func(c *client) error {
			_, _, err := c.Effects(t.Context(), "here")
			return err
		}, []string{`{"effects":` + many(maxEffects+1, effect) + `}`, `{"next":"here"}`}},
		"runs": {func(c *client) error {
			_, err := c.Workflows().List(t.Context(), WorkflowQuery{Limit: 1, After: "here"})
			return err
		}, []string{`{"runs":[{"id":"a"},{"id":"b"}]}`, `{"next":"here"}`}},
		"run": {func(c *client) error {
			_, err := c.Workflows().Show(t.Context(), id, RunInfo)
			return err
		}, []string{`null`, fmt.Sprintf(`{"run":"%s"}`, other)}},
		"find run": {func(c *client) error {
			_, err := c.Workflows().Find(t.Context(), "flow", "id")
			return err
		}, []string{`{}`}},
		"rows": {func(c *client) error {
			_, err := c.Workflows().Rows(t.Context(), id, "here")
			return err
		}, []string{fmt.Sprintf(`{"run":"%s"}`, other), fmt.Sprintf(`{"run":"%s","next":"here"}`, id), fmt.Sprintf(`{"run":"%s","all":1,"rows":[{},{}]}`, id)}},
	}
	for name, one := range reads {
		for _, answer := range one.answers {
			err := one.read(hostile(t, with("1", 200, answer)))
			require.ErrorIs(t, err, ErrUnreachable, "%s: %.60s", name, answer)
			require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, name)
		}
	}
}
