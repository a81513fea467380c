package connect

import (
	"context"
	"iter"

	"github.com/gopawl/pawl/admin"
)

// Events iterates over future events, across changes of the owner. It ends with the error of ctx, or with
// pawl.ErrClosed when the client is closed. An unknown number of events is lost while the file changes
// hands. The next event counts them as one in Missed.
func (c *Client) Events(ctx context.Context) iter.Seq2[admin.Event, error] {
	return func(yield func(admin.Event, error) bool) {
		var moved int64
		stopped := false
		err := c.use(ctx, func(l *link) error {
			for e, err := range l.Events(ctx) {
				if err != nil {
					moved = 1
					return err
				}
				e.Missed, moved = e.Missed+moved, 0
				if !yield(e, nil) {
					stopped = true
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(admin.Event{}, err)
		}
	}
}
