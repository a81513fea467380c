package bolt

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a row of bucketDelayed leaves out what its key says already, and is read back
// unchanged.
func TestDelayedRowsLeaveOutWhatTheirKeysSay(t *testing.T) {
	ln, id := line{7, 8}, pawl.ID{1, 2}
	e := &pawl.Envelope{Key: "a", Priority: 3, NotBefore: time.Unix(1_900_000_000, 7), Seq: 9, Attempts: 1}
	ready, limit := readyKey(nil, ln, e), limitKey(nil, ln.queue, e.Key)
	tagged := *e
	tagged.FairTag = 1_800_000_000_000_000_001
	for name, c := range map[string]struct {
		key, ready []byte
		width      int // of what the value has of the key in ready
	}{
		"a time":            {delayedKey(nil, e), ready, restWidth},
		"an effect":         {heldKey(nil, []byte("effect"), ln, e), ready, 0},
		"a limit":           {blockedKey(nil, ln, e), ready, 0},
		"a turn":            {turnKey(nil, ln.queue, e), ready, restWidth},
		"a turn, with tag":  {turnKey(nil, ln.queue, e), readyKey(nil, ln, &tagged), readyKeyWidth},
		"other jobs":        {awaitKey(nil, ready), ready, 0},
		"a limit, with tag": {append(blockedPrefix(nil, limit), readyKey(nil, ln, &tagged)...), readyKey(nil, ln, &tagged), 0},
	} {
		row := delayedRow{indexRow{id, hasKey}, c.ready}
		value := row.append(nil, c.key)
		require.Len(t, value, indexWidth+c.width, name)
		again, err := parseDelayedRow(c.key, seal(c.key, slices.Clone(value)))
		require.NoError(t, err, name)
		require.Equal(t, row, again, name)
		for n := range len(value) {
			if n != indexWidth && n != indexWidth+restWidth {
				_, err = parseDelayedRow(c.key, seal(c.key, slices.Clone(value[:n])))
				require.ErrorIs(t, err, pawl.ErrCorrupt, "%s: %d bytes", name, n)
			}
		}
	}
	_, err := parseDelayedRow([]byte("short"), seal([]byte("short"), make([]byte, indexWidth+restWidth)))
	require.ErrorIs(t, err, pawl.ErrCorrupt, "a key without a time and a sequence")
}

// Rule: jobs that a fetch chose and did not get take no room of their keys from the next fetch.
func TestChosenJobsTakeNoRoomForLong(t *testing.T) {
	q := openTest(t, perKey(1))
	addKeyed(t, q, 1, "a")
	require.NoError(t, q.do(t.Context(), look(func(tx *txn) {
		for range 2 {
			room := settlePortion
			s := selection{
				t: tx, request: &pawl.Request{Max: 10, Queues: []string{pawl.DefaultQueue}}, asked: []asked{{queue: 1}}, all: true,
				turns: &turns{queues: make(map[queueNumber]*turn)}, spare: new(spare), allow: allowance{idle: 10}, room: &room,
			}
			if err := s.run(); err != nil || len(s.jobs) != 1 {
				t.Errorf("%d jobs, error %v", len(s.jobs), err)
			}
		}
	})))
}
