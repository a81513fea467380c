package bolt

import (
	"context"

	"github.com/gopawl/pawl/engine"
)

func init() {
	engine.Register(engine.File, func(_ context.Context, path string) (engine.Queue, error) {
		q, err := Open(path, nil)
		if err != nil {
			return nil, err // not a nil *Queue in an interface
		}
		return q, nil
	})
}
