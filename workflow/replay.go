package workflow

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Replay calls the function of a completed run again, with the results in its journal, and
// compares what the function returns with the result of the run. No step runs and nothing is
// written. Replay finds code that makes the same calls but computes something else, for example
// because it uses a clock, a random number, the order of a map, or a variable that a step writes.
//
// It returns nil if the results are the same, and a [*DeterminismError] if they or the calls
// differ. Other errors are [ErrNotFound], [pawl.ErrNotEligible] for a run that is not done,
// [ErrNoFlow], and a panic of the code.
func (e *Engine) Replay(ctx context.Context, run pawl.ID) error {
	x, input, err := e.dry(ctx, run)
	switch {
	case err != nil:
		return fmt.Errorf("replay run %s: %w", run, err)
	case x.row.Status != Done:
		return fmt.Errorf("replay run %s, which is %s and not done: %w", run, x.row.Status, pawl.ErrNotEligible)
	}
	output, err := x.compareCalls(ctx, input)
	if err != nil {
		return err
	}
	var stored []byte
	err = e.source.ViewRows(ctx, func(tx driver.Reader) (err error) {
		stored, err = rowsOf(tx).output(run, x.row)
		return err
	})
	if err == nil {
		stored, err = e.fromStored(stored)
	}
	if err == nil {
		output, err = e.fromStored(output)
	}
	if err != nil {
		return fmt.Errorf("replay run %s: %w", run, err)
	}
	if sameValue(stored, output) {
		return nil
	}
	return x.complete(&DeterminismError{Want: "the result " + resultText(stored), Got: "the result " + resultText(output),
		Reason: "the calls are the same, but code between them gave another result, such as a clock, a random number, the order of " +
			"a map, or a variable that a step writes; do that in a step and return its result"})
}

// maxResultText limits how much of a result an error shows.
const maxResultText = 100

// resultText returns the beginning of a result as text.
func resultText(encoded []byte) string {
	var v any
	if len(encoded) == 0 || driver.DecodePayload(encoded, &v) != nil {
		return fmt.Sprintf("of %d bytes", len(encoded))
	}
	return ellipsis.Truncate(fmt.Sprintf("%#v", v), maxResultText)
}
