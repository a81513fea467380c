package sqlite

import (
	"context"

	"github.com/gopawl/pawl/engine"
)

func init() {
	engine.RegisterPath("sqlite", func(ctx context.Context, path string) (engine.Queue, error) {
		q, err := Open(ctx, path, nil)
		if err != nil {
			return nil, err // not a nil *Queue in an interface
		}
		return q, nil
	})
}
