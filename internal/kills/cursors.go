package kills

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// saveCursors runs four jobs, which are there already, and saves cursors that grow, from several
// goroutines.
func saveCursors(ctx context.Context, q Queue) error {
	leases, err := q.Fetch(ctx, pawl.Request{Max: 4})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			n := uint64(0)
			if l.Cursor != nil {
				n = binary.BigEndian.Uint64(l.Cursor)
			}
			for {
				n++
				if err := q.SaveCursor(ctx, l, numbered(n)); err != nil {
					panic(err)
				}
				Say("saved", l.ID, n)
			}
		})
	}
	all.Wait()
	return nil
}

// Cursors guards the rule: a cursor never goes back. Whenever the process is killed, each job has its last cursor that
// was acknowledged, or a later one, and has it whole.
func (e Engine) Cursors(t *testing.T) {
	place := e.New(t)
	e.Look(t, place, func(q Queue) {
		for range 4 {
			_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, 5000)})
			require.NoError(t, err)
		}
	})
	last := make(map[string]uint64)
	total := 0
	for range Count(t, 8) {
		acked := make(map[string]uint64)
		total += e.kill(t, "cursors", place, func(_, id string, n uint64) { acked[id] = n }, func(q Queue) {
			for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				n := uint64(0)
				if e.Cursor != nil {
					n = binary.BigEndian.Uint64(e.Cursor)
					require.Equal(t, numbered(n), e.Cursor)
				}
				require.GreaterOrEqual(t, n, max(last[e.ID.String()], acked[e.ID.String()]))
				last[e.ID.String()] = n
			}
		})
	}
	require.Len(t, last, 4)
	t.Logf("%d acknowledged saves", total)
}
