package redis

import (
	"context"

	"github.com/gopawl/pawl/engine"
)

func init() {
	for _, scheme := range []string{"redis", "rediss"} {
		engine.Register(scheme, func(ctx context.Context, where string) (engine.Queue, error) {
			q, err := Open(ctx, where, nil)
			if err != nil {
				return nil, err // not a nil *Queue in an interface
			}
			return q, nil
		})
	}
}
