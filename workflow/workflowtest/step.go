package workflowtest

import (
	"context"
	"strings"

	"github.com/gopawl/pawl/workflow"
)

// Stub has fn run in place of the function of a step, until it is replaced by another; nil
// removes it. What fn returns has to fit the step's type. The retries of the step, and its
// checkpoint, are as without it.
//
// Here, and in all of this package, a step is named in full, as [workflow.Entry.Step] does:
// "charge", "eu/fetch#2". Or by its own name alone, "fetch", which stands for every step of
// that name, in all branches, runs and flows; where there is a stub for the full name too,
// that counts. Undo steps are steps too.
func (k *Kit) Stub(step string, fn func(ctx context.Context) (any, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stubs[step] = fn
}

// Attempts is how often the function of a step, or its stub, was called.
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

// names are what a step may be called, the full name first.
func names(s workflow.StepInfo) []string {
	own := s.Step[strings.LastIndexByte(s.Step, '/')+1:]
	own, _, _ = strings.Cut(own, "#")
	if own == s.Step {
		return []string{own}
	}
	return []string{s.Step, own}
}
