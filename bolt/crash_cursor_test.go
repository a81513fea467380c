package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
)

// cursorOf returns a cursor of these tests. It fills one page or several.
func cursorOf(n uint64) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, n), 1+int(n%5)*300)
}

// cursorRole runs four jobs, which are there already, and saves cursors that grow, from several
// goroutines. It prints the number of each cursor once the save is acknowledged.
func cursorRole(args []string) error {
	q, err := Open(args[0], crashOptions())
	if err != nil {
		return err
	}
	say("up")
	ctx := context.Background()
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
				if err := q.SaveCursor(ctx, l, cursorOf(n)); err != nil {
					panic(err)
				}
				say("saved", l.ID, n)
			}
		})
	}
	all.Wait()
	return nil
}

// Rule: a cursor never goes back. Whenever the process is killed, each job has its last cursor that
// was acknowledged, or a later one, and has it whole.
func TestKilledWithCursors(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, crashOptions())
	for range 4 {
		_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, 5000)})
		require.NoError(t, err)
	}
	require.NoError(t, q.Close())
	last := make(map[string]uint64)
	total := 0
	for range kills.Count(t, 8) {
		c := startChild(t, "cursor", path)
		require.Equal(t, "up", c.line(t))
		acked := make(map[string]uint64)
		for _, line := range c.killAfter(t, 40) {
			id, text, _ := strings.Cut(strings.TrimPrefix(line, "saved "), " ")
			n, err := strconv.ParseUint(text, 10, 64)
			require.NoError(t, err)
			acked[id] = n
			total++
		}
		require.Empty(t, c.stderr.String())
		q := openAt(t, path, crashOptions())
		require.NoError(t, q.Check(t.Context()))
		for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			n := uint64(0)
			if e.Cursor != nil {
				n = binary.BigEndian.Uint64(e.Cursor)
				require.Equal(t, cursorOf(n), e.Cursor)
			}
			require.GreaterOrEqual(t, n, max(last[e.ID.String()], acked[e.ID.String()]))
			last[e.ID.String()] = n
		}
		require.NoError(t, q.Close())
	}
	require.Len(t, last, 4)
	t.Logf("%d acknowledged saves", total)
}
