package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a transaction whose time is up between two of its statements has no effect, and the next transaction
// does not continue where it ended.
func TestTimeIsUpBetweenStatements(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		const limit, jobs = time.Second, 256
		hold := make(chan chan struct{}, 1)
		var slow atomic.Int64 // which look at the clock takes longer than the limit, from now on
		q := open(t, schema, noPoll, virtual, func(o *postgres.Options) {
			o.Timeout = limit
			o.Now = func() time.Time {
				select {
				case release := <-hold:
					<-release
				default:
				}
				if slow.Add(-1) == 0 {
					time.Sleep(2 * limit)
				}
				return time.Now()
			}
		})
		stored := 0
		for look := range int64(10) {
			release := make(chan struct{})
			hold <- release
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = q.Reap(t.Context()) })
			synctest.Wait()
			calls.Go(func() { // these two share a transaction, in which the second looks at the clock
				batch := make([]*pawl.Envelope, jobs) // which are stored before the commit is sent
				for i := range batch {
					batch[i] = &pawl.Envelope{Kind: "k", ID: pawl.NewID(time.Now())}
				}
				if _, err := q.Enqueue(t.Context(), batch...); err == nil {
					stored += jobs
				} else {
					assert.ErrorIs(t, err, postgres.ErrUnavailable, "look %d", look)
				}
			})
			calls.Go(func() { _, _ = q.Reap(t.Context()) })
			synctest.Wait()
			slow.Store(look + 1)
			close(release)
			calls.Wait()
			slow.Store(0)
		}
		require.Equal(t, stored, count(t, "SELECT count(*) FROM "+schema+".job"))
	})
}

// Rule: a transaction that refuses all its calls commits nothing, so that none of them waits for a sync.
func TestRefusedCallsCommitNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		q := open(t, schema, noPoll, virtual)
		commits := func() int { return count(t, "SELECT commits FROM "+schema+".process") }
		e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k"}
		_, err := q.Enqueue(t.Context(), e)
		require.NoError(t, err)
		before := commits()
		_, err = q.Enqueue(t.Context(), e)
		require.ErrorIs(t, err, pawl.ErrConflict)
		require.Equal(t, before, commits())
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "other"}))
		require.Greater(t, commits(), before)
	})
}
