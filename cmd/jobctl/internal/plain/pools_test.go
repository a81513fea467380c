package plain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a pool counts the leased jobs of its queues, and of no other, and names a queue with a lower number as such.
func TestPools(t *testing.T) {
	queue := func(name string, leased int, pool string, running int) pawl.QueueStats {
		return pawl.QueueStats{Name: name, Counts: pawl.Counts{Leased: leased}, Limits: pawl.Limits{Pool: pawl.Pool{Name: pool, Running: running}}}
	}
	pools := Pools([]pawl.QueueStats{
		queue("a", 1, "gpu", 2), queue("b\n", 2, "gpu", 4), queue("c", 8, "", 0), queue("d", 0, "\x1b", 1), queue("e", 16, "gpu", 4),
	})
	var texts []string
	for _, p := range pools {
		texts = append(texts, p.String())
	}
	require.Equal(t, []string{`pool gpu: 19 of 4 leased, queues a (2), b\n, e`, `pool \x1b: 0 of 1 leased, queues d`}, texts)
	require.Empty(t, Pools([]pawl.QueueStats{queue("c", 8, "", 0)}))
}
