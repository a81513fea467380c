package patterns

import (
	"context"

	"github.com/gopawl/pawl/workflow"
)

// Trip books each part of a trip and returns their number. If a part cannot be booked, it cancels
// those before it in reverse order, and the part itself too, since nobody knows how far it came.
func Trip(w World) *workflow.Flow[[]string, int] {
	return workflow.Define("trip", func(r *workflow.Run, parts []string) (int, error) {
		for _, part := range parts {
			r.Undo("cancel "+part, func(ctx context.Context) error {
				return w.Do(ctx, r.Key(), "cancel "+part)
			})
			if err := do(r, w, "book "+part); err != nil {
				return 0, err
			}
		}
		return len(parts), nil
	})
}
