package bolt

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: the memory for one value overlaps with no other, whatever is requested before and after
// it, and a write past its end goes elsewhere.
func TestValuesDoNotOverlap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var tx txn
	values := make([][]byte, 10_000)
	for i := range values {
		n := 1 + random.IntN(60)
		if i%100 == 0 {
			n = random.IntN(3 * mostSpace) // more than is allocated at a time
		}
		v := tx.value(n)
		require.Empty(t, v)
		require.Equal(t, n, cap(v), "room for %d bytes", n)
		values[i] = append(v, bytes.Repeat([]byte{byte(i)}, n)...)
		_ = append(values[i], 0xff)
	}
	for i, v := range values {
		require.Equal(t, len(v), bytes.Count(v, []byte{byte(i)}), "value %d", i)
	}
}

// Rule: ten thousand rows of one transaction are all stored as written, together with as many
// leases, promotions and acks.
func TestManyRowsOfOneTransaction(t *testing.T) {
	t.Parallel()
	jobs := race.Fewer(pawl.MaxBatchJobs)
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	batch := batchOf(jobs, func(i int, e *pawl.Envelope) {
		e.Payload = fmt.Appendf(nil, "payload %d", i)
		switch i % 5 {
		case 1:
			e.Delay = time.Duration(1+i) * time.Hour
		case 2:
			e.Queue, e.Priority = "other", int8(i%256-128)
		case 3:
			e.UniqueKey, e.IdempotencyKey, e.Deadline = fmt.Sprint("u", i), fmt.Sprint("i", i), time.Now().Add(time.Hour)
		case 4:
			e.Payload = bytes.Repeat(e.Payload, 200)
		}
	})
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	checkNow(t, q)
	for i, e := range batch {
		found := find(t, q, e.ID)
		require.True(t, found.Kind == fmt.Sprint(i) && bytes.Equal(e.Payload, found.Payload) && found.Queue == cmp.Or(e.Queue, pawl.DefaultQueue) &&
			found.NotBefore.Equal(found.Created.Add(e.Delay)) && found.UniqueKey == e.UniqueKey, "job %d", i)
	}
	require.Equal(t, pawl.Counts{Ready: jobs / 5 * 3, Delayed: jobs / 5}, countsOf(t, q, pawl.DefaultQueue))

	var leases []*pawl.Lease
	for len(leases) < jobs/5*4 {
		some := fetch(t, q, jobs, pawl.DefaultQueue, "other")
		require.NotEmpty(t, some)
		leases = append(leases, some...)
	}
	checkNow(t, q)
	require.NoError(t, q.Settle(t.Context(), acksOf(leases[:len(leases)/2])...))
	checkNow(t, q)
	require.NoError(t, q.Close())
	q = openAt(t, q.path, nil) // which takes the other leases back
	checkNow(t, q)
	all := countsOf(t, q, pawl.DefaultQueue)
	driver.AddCounts(&all, countsOf(t, q, "other"))
	require.Equal(t, pawl.Counts{Ready: len(leases) - len(leases)/2, Delayed: jobs / 5}, all)
}
