package workflowtest_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// asker starts a run that answers, asks it with a token, and returns the token and the answer.
type asker struct {
	flow, answers workflow.Definition
	start         func(k *workflowtest.Kit) *workflowtest.Run[string]
	tokens        map[string]bool // that a step has seen
}

func newAsker() *asker {
	type question struct {
		From  pawl.ID
		Token string
	}
	ask, answer := workflow.DefineSignal[question]("ask"), workflow.DefineSignal[string]("answer")
	a := &asker{tokens: make(map[string]bool)}
	answers := workflow.Define("answers", func(r *workflow.Run, _ string) (string, error) {
		q, err := ask.Wait(r, workflow.Forever)
		if err != nil {
			return "", err
		}
		return "", answer.SendFrom(r, q.From, "re: "+q.Token)
	})
	flow := workflow.Define("asks", func(r *workflow.Run, _ int) (string, error) {
		token, err := workflow.Decide(r, "token", rand.Text)
		if err != nil {
			return "", err
		}
		_, err = workflow.Step(r, "note", func(context.Context) (int, error) { a.tokens[token] = true; return 0, nil })
		if err != nil {
			return "", err
		}
		to, err := answers.StartFrom(r, r.ID(), token)
		if err != nil {
			return "", err
		}
		if err := ask.SendFrom(r, to, question{r.Run(), token}); err != nil {
			return "", err
		}
		return answer.Wait(r, workflow.Forever)
	})
	a.flow, a.answers = flow, answers
	a.start = func(k *workflowtest.Kit) *workflowtest.Run[string] { return workflowtest.Start(k, flow, "1", 0) }
	return a
}

// Rule: at every crash, a decided value stays what a step has seen, and a run sends each signal once.
func TestCrashesOfAsker(t *testing.T) {
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		a := newAsker()
		k := workflowtest.New(t, &workflowtest.Options{At: at}, a.flow, a.answers)
		run := a.start(k)
		out, err := run.Result()
		require.NoError(t, err)
		require.Len(t, a.tokens, 1)
		require.True(t, a.tokens[out[len("re: "):]], out)
		require.Zero(t, run.Info().Unread)
		if at.String() == "after send ask" {
			require.Equal(t, 1, k.Attempts("send ask"), "its end is durable with the signal")
		}
	})
}

// Rule: a stub of a step that sends a signal sends none.
func TestStubOfASignal(t *testing.T) {
	a := newAsker()
	k := workflowtest.New(t, nil, a.flow, a.answers)
	k.Stub("send ask", func(context.Context) (any, error) { return nil, nil })
	run := a.start(k)
	require.Equal(t, []string{"answer"}, run.Info().Waits)
	k.Stub("send ask", nil)
}
