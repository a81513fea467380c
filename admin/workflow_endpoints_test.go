package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Rule: an invalid request about workflows is refused, with a reason, and changes nothing.
func TestHostileRequestsAboutWorkflows(t *testing.T) {
	run := `"run":"01234567-89ab-7cde-8f01-23456789abcd"`
	h := handlerFor(t, Of(openLive(t)), &HandlerOptions{Logger: hclog.NewNullLogger()})
	for _, test := range []requestTest{
		{rule: "a change by GET", method: "GET", path: opPrune.path, status: 405, code: codeMethod},
		{rule: "a path below a path", method: "GET", path: opShowRun.path + "/x", status: 404, code: codePath},
		{rule: "a status that is none", method: "POST", path: opRuns.path, kind: jsonType, body: `{"status":"lost"}`, status: 400, code: "invalid"},
		{rule: "an unknown field of a list", method: "POST", path: opRuns.path, kind: jsonType, body: `{"id":"1"}`, status: 400, code: "invalid"},
		{rule: "a negative limit", method: "POST", path: opRuns.path, kind: jsonType, body: `{"limit":-1}`, status: 400, code: "invalid"},
		{rule: "a cursor that is none", method: "POST", path: opRuns.path, kind: jsonType, body: `{"after":"x"}`, status: 400, code: "invalid"},
		{rule: "an ID that is none", method: "POST", path: opShowRun.path, kind: jsonType, body: `{"run":"7"}`, status: 400, code: "invalid"},
		{rule: "no ID", method: "GET", path: opShowRun.path, status: 404, code: "no_run"},
		{rule: "a depth that is none", method: "POST", path: opShowRun.path, kind: jsonType, body: `{` + run + `,"depth":"all"}`, status: 400, code: "invalid"},
		{rule: "a run that is not there", method: "POST", path: opShowRun.path, kind: jsonType, body: `{` + run + `}`, status: 404, code: "no_run"},
		{rule: "an ID that names no run", method: "POST", path: opFindRun.path, kind: jsonType, body: `{"flow":"a","id":"b"}`, status: 404, code: "no_run"},
		{rule: "a form", method: "POST", path: opDoRuns.path, kind: "text/plain", body: "{}", status: 415, code: codeType},
		{rule: "no body", method: "POST", path: opDoRuns.path, kind: jsonType, status: 400, code: "invalid"},
		{rule: "an unknown field", method: "POST", path: opDoRuns.path, kind: jsonType, body: `{"verb":"cancel","runs":[],"at":1}`, status: 400, code: "invalid"},
		{rule: "a reason to pause", method: "POST", path: opDoRuns.path, kind: jsonType, body: `{"verb":"pause","runs":[],"reason":"x"}`, status: 400, code: "invalid"},
		{rule: "a verb that is none", method: "POST", path: opDoRuns.path, kind: jsonType, body: `{"verb":"stop","runs":[]}`, status: 400, code: "invalid"},
		{rule: "a condition that is none", method: "POST", path: opDoRuns.path, kind: jsonType, body: `{"verb":"pause","runs":[],"if":["lost"]}`, status: 400, code: "invalid"},
		{rule: "an action on too many", method: "POST", path: opDoRuns.path, kind: jsonType, body: `{"verb":"pause","runs":["01234567-89ab-7cde-8f01-23456789abcd"` + strings.Repeat(`,"01234567-89ab-7cde-8f01-23456789abcd"`, MaxIDs) + `]}`, status: 400, code: "invalid"},
		{rule: "a part that is null", method: "POST", path: opRestoreRows.path, kind: jsonType, body: `{"parts":[null]}`, status: 400, code: "invalid"},
		{rule: "a signal without a name", method: "POST", path: opSignal.path, kind: jsonType, body: `{` + run + `}`, status: 400, code: "invalid"},
		{rule: "a value that is not whole", method: "POST", path: opSignal.path, kind: jsonType, body: `{` + run + `,"name":"a","payload":{"size_bytes":9}}`, status: 400, code: "invalid"},
		{rule: "a value as JSON", method: "POST", path: opSignal.path, kind: jsonType, body: `{` + run + `,"name":"a","payload":{"value":{"a":1}}}`, status: 404, code: "no_run"},
		{rule: "a fork without an ID", method: "POST", path: opFork.path, kind: jsonType, body: `{` + run + `,"from":"a","new_id":""}`, status: 400, code: "invalid"},
		{rule: "a fork of nothing", method: "POST", path: opFork.path, kind: jsonType, body: `{` + run + `,"from":"a","new_id":"b"}`, status: 404, code: "no_run"},
		{rule: "to remove without a time", method: "POST", path: opPrune.path, kind: jsonType, body: `{}`, status: 400, code: "invalid"},
	} {
		test.run(t, h)
	}
}

// Rule: a read-only handler permits Verify, and no change.
func TestReadOnlyTakesNoChangesOfWorkflows(t *testing.T) {
	run := `{"run":"01234567-89ab-7cde-8f01-23456789abcd"}`
	h := handlerFor(t, Of(openLive(t)), &HandlerOptions{ReadOnly: true, Logger: hclog.NewNullLogger()})
	for _, path := range []string{opSignal.path, opDoRuns.path, opRestoreRows.path, opFork.path, opPrune.path} {
		requestTest{rule: path, method: "POST", path: path, kind: jsonType, body: run, status: 403, code: "denied"}.run(t, h)
	}
	requestTest{rule: "a dry run", method: "POST", path: opDryRunRuns.path, kind: jsonType, body: `{"verb":"pause","runs":[],"dry_run":true}`, status: 200}.run(t, h)
	requestTest{rule: "verify", method: "POST", path: opVerify.path, kind: jsonType, body: run, status: 404, code: "no_run"}.run(t, h)
	requestTest{rule: "list", method: "GET", path: opRuns.path, status: 200}.run(t, h)
}

// pruning is an Admin whose Prune a test defines.
type pruning struct {
	scripted
	prune func(context.Context) (int, error)
}

func (p *pruning) Workflows() Workflows { return prunedRuns{prune: p.prune} }

type prunedRuns struct {
	Workflows
	prune func(context.Context) (int, error)
}

func (p prunedRuns) Prune(ctx context.Context, _ time.Time) (int, error) { return p.prune(ctx) }

// Rule: one request removes runs for some seconds, at least one, and reports whether there are
// more; the client repeats it until none are left, and adds up the counts.
func TestPruneGoesOnFromRequestToRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 10
		a := &pruning{prune: func(ctx context.Context) (n int, err error) {
			for ; left > 0 && ctx.Err() == nil; n++ {
				<-time.After(pruneTime / 2)
				left--
				driver.ProgressOf(ctx)(int64(n+1), -1)
			}
			return n, ctx.Err()
		}}
		h := handlerFor(t, a, &HandlerOptions{Logger: hclog.NewNullLogger()})
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "http://localhost"+opPrune.path, strings.NewReader(`{"before":"2026-03-01T00:00:00Z"}`))
		r.Header.Set("Content-Type", jsonType)
		h.ServeHTTP(w, r)
		require.JSONEq(t, `{"removed":3,"more":true}`, w.Body.String())
		require.Equal(t, 7, left)

		c := newPiped(t, a, 4).client()
		defer c.Close()
		var reported []int64
		n, err := c.Workflows().Prune(driver.WithProgress(t.Context(), func(done, total int64) {
			require.EqualValues(t, -1, total)
			reported = append(reported, done)
		}), noon)
		require.NoError(t, err)
		require.Equal(t, 7, n)
		require.Equal(t, []int64{3, 6, 7}, reported)
	})
}

// Rule: the error that ends a removal is returned with the number removed before.
func TestPruneThatFails(t *testing.T) {
	calls := 0
	a := &pruning{prune: func(context.Context) (int, error) { calls++; return 5, pawl.ErrPoisoned }}
	s := httptest.NewServer(handlerFor(t, a, &HandlerOptions{Logger: hclog.NewNullLogger()}))
	defer s.Close()
	c, err := newClient(s.URL, nil, nil)
	require.NoError(t, err)
	_, err = c.Workflows().Prune(t.Context(), noon)
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	require.Equal(t, 1, calls)
}

// Rule: an answer with false statements about runs is rejected.
func TestAnswersThatLieAboutRuns(t *testing.T) {
	ctx, id := t.Context(), pawl.NewID(noon)
	ask := func(answer string) Workflows { return hostile(t, with("1", http.StatusOK, answer)).Workflows() }
	for _, answer := range []string{"", "[]", `{"runs":[{"run":"x"}]}`, `{"runs":[{"run":"` + id.String() + `","status":"undead"}]}`, `{"runs":[{"run":"` + id.String() + `","parent":"x"}]}`} {
		_, err := ask(answer).List(ctx, WorkflowQuery{})
		require.ErrorIs(t, err, ErrUnreachable, answer)
	}
	for _, answer := range []string{"", "null", "{}", `{"run":"x"}`, `{"run":"` + pawl.NewID(noon).String() + `"}`, `{"run":"` + id.String() + `","journal":[{"child":"x"}]}`, `{"run":"` + id.String() + `","input":"!"}`, `{"run":"` + id.String() + `","published":[{"key":"a","value":7}]}`} {
		_, err := ask(answer).Show(ctx, id, RunValues)
		require.ErrorIs(t, err, ErrUnreachable, answer)
	}
	for _, answer := range []string{"", `{"items":[{"n":0}]}`, `{"items":[{"n":2},{"n":1}]}`} {
		_, err := ask(answer).Items(ctx, id, "a", 0)
		require.ErrorIs(t, err, ErrUnreachable, answer)
	}
	for _, answer := range []string{"", "{}", `{"run":7}`} {
		_, err := ask(answer).Find(ctx, "a", "b")
		require.ErrorIs(t, err, ErrUnreachable, answer)
		_, err = ask(answer).Fork(ctx, id, "a", "b")
		require.ErrorIs(t, err, ErrUnreachable, answer)
	}
	for _, answer := range []string{"", "{}", `{"errors":[]}`, `{"errors":[null,null]}`} {
		_, err := ask(answer).Do(ctx, RunAction{Verb: Cancel}, id)
		require.ErrorIs(t, err, ErrUnreachable, answer)
	}
	_, err := ask("").Do(ctx, RunAction{Verb: Cancel}, id)
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	err = ask("").Verify(ctx, id)
	require.ErrorIs(t, err, ErrUnreachable)
	require.False(t, errors.Is(err, pawl.ErrUnknownOutcome), "nothing was to be changed")
}

// Rule: an iteration over runs ends with the first error, or when its caller stops.
func TestWorkflowRunsEnds(t *testing.T) {
	for _, err := range WorkflowRuns(t.Context(), hostile(t, with("1", http.StatusOK, "")).Workflows(), WorkflowQuery{}) {
		require.ErrorIs(t, err, ErrUnreachable)
	}
	f := newFixture(t, someRuns)
	n := 0
	for range WorkflowRuns(t.Context(), Of(f.q).Workflows(), WorkflowQuery{Filter: workflow.Filter{Flow: "order"}, Limit: 1}) {
		n++
		break
	}
	require.Equal(t, 1, n)
}
