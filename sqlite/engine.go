package sqlite

import (
	"context"
	"strings"

	"github.com/gopawl/pawl/engine"
)

func init() {
	engine.Register("sqlite", func(ctx context.Context, where string) (engine.Queue, error) {
		q, err := Open(ctx, strings.TrimPrefix(where, "sqlite:"), nil)
		if err != nil {
			return nil, err // not a nil *Queue in an interface
		}
		return q, nil
	})
}
