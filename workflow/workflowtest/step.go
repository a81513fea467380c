package workflowtest

import (
	"context"
	"strings"

	"github.com/gopawl/pawl/workflow"
)

// Stub replaces the function of a step by fn until the next call; nil removes the stub. The result of
// fn must have the step's type. Retries and checkpoints of the step stay.
//
// In this package a step has its full name, as in [workflow.Entry.Step]: "charge", "eu/fetch#2". Its
// last part alone, "fetch", means every step of that name in all branches, runs and flows. A stub for
// the full name takes precedence. Undo steps are steps too.
func (k *Kit) Stub(step string, fn func(ctx context.Context) (any, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stubs[step] = fn
}

// Attempts returns how often the function of a step, or its stub, was called.
func (k *Kit) Attempts(step string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.attempts[step]
}

// stubbed is the innermost middleware.
func (k *Kit) stubbed(next workflow.StepFunc) workflow.StepFunc {
	return func(ctx context.Context, s workflow.StepInfo) (any, error) {
		var stub func(context.Context) (any, error)
		k.mu.Lock()
		for _, name := range names(s) {
			k.attempts[name]++
			if stub == nil {
				stub = k.stubs[name]
			}
		}
		k.mu.Unlock()
		if stub != nil {
			return stub(ctx)
		}
		return next(ctx, s)
	}
}

// names returns the names of a step, the full name first.
func names(s workflow.StepInfo) []string {
	own := s.Step[strings.LastIndexByte(s.Step, '/')+1:]
	own, _, _ = strings.Cut(own, "#")
	if own == s.Step {
		return []string{own}
	}
	return []string{s.Step, own}
}
