package patterns

import (
	"context"

	"github.com/gopawl/pawl/workflow"
)

// Position is how far an import has come.
type Position struct{ Line, Total int }

// Imported has the position after each part. Imported.Watch follows an import.
var Imported = workflow.DefineStream[Position]("imported")

// Import reads a long input part by part, and returns the sum of its numbers. Read returns the part that
// begins at a line, which is empty at the end. Each part begins with an empty journal, so the input may
// be of any length, and its position is in a stream once.
func Import(read func(ctx context.Context, line int) ([]int, error)) *workflow.Flow[Position, int] {
	return workflow.Define("import", func(r *workflow.Run, at Position) (int, error) {
		part, err := workflow.Step(r, "part", func(ctx context.Context) ([]int, error) { return read(ctx, at.Line) })
		if err != nil {
			return 0, err
		}
		if len(part) == 0 {
			return at.Total, nil
		}
		for _, n := range part {
			at.Line, at.Total = at.Line+1, at.Total+n
		}
		if err := Imported.Append(r, at); err != nil {
			return 0, err
		}
		return 0, workflow.Restart(r, at)
	})
}
