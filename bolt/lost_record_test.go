package bolt

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// A completed job with a damaged record is counted until its retention ends, and no longer. So
// are the jobs beside it.
func TestDamagedRecordOfACompletedJob(t *testing.T) {
	for _, c := range append(changes, missing) {
		t.Run(c.name, func(t *testing.T) {
			path := memoryFolder(t) + "/jobs.db"
			synctest.Test(t, func(t *testing.T) {
				q := openAt(t, path, nil)
				var damaged pawl.ID
				for n := range 3 {
					damaged = add(t, q, func(e *pawl.Envelope) {
						e.Queue, e.Retain, e.Payload = "kept", time.Duration(3-n)*time.Minute, make([]byte, 3000)
					}).ID
					require.NoError(t, q.Settle(t.Context(), leaseOne(t, q, "kept").Ack()))
				}
				damageRecord(t, q, damaged, c.change)
				for left := 3; left >= 0; left-- {
					require.Equal(t, pawl.Counts{Completed: left}, countsOf(t, q, "kept"))
					pass(time.Minute)
					synctest.Wait()
				}
				checkNow(t, q)
			})
		})
	}
}

// A job with keys whose record is damaged while it runs is acked: it is done and gone. The log
// says that its keys are unknown, and the next job with them runs.
func TestAckOfADamagedRecord(t *testing.T) {
	for _, c := range append(changes, missing) {
		t.Run(c.name, func(t *testing.T) {
			path := memoryFolder(t) + "/jobs.db"
			lines, o := warnings()
			q := openAt(t, path, o)
			keyed := func() { add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey, e.Retain = "key", time.Hour }) }
			keyed()
			l := leaseOne(t, q)
			keyed()
			require.Empty(t, fetch(t, q, 9))
			damageRecord(t, q, l.ID, c.change)
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			require.Nil(t, find(t, q, l.ID))
			require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
			require.NotEmpty(t, lines)
			line := <-lines
			require.Contains(t, line, "[ERROR]")
			require.Contains(t, line, "its keys are not known")
			require.True(t, strings.Contains(line, l.ID.String()), "which job it is")
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			require.Equal(t, pawl.Counts{Completed: 1}, countsOf(t, q, pawl.DefaultQueue))
		})
	}
}
