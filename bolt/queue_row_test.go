package bolt

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a damaged row of a queue fails the fetches that name that queue and no others. The
// others get their jobs, whether these are ready or become due later.
func TestFetchesBesideADamagedQueueRow(t *testing.T) {
	for name, row := range map[string][]byte{"number": numberKey(nil, 1), "name": nameKey(nil, "damaged")} {
		for _, c := range changes {
			for _, wait := range []pawl.Wait{pawl.WaitForJob, pawl.WaitFinished} {
				t.Run(name+"/"+c.name, func(t *testing.T) {
					path := memoryFolder(t) + "/jobs.db"
					synctest.Test(t, func(t *testing.T) {
						q := openDamaged(t, path)
						fetching := func(queues ...string) <-chan error {
							return started(func() error {
								leases, err := q.Fetch(t.Context(), pawl.Request{Max: 9, Wait: wait, Queues: queues})
								for _, l := range leases {
									require.Equal(t, "sound", l.Queue)
								}
								return err
							})
						}
						add(t, q, func(e *pawl.Envelope) { e.Queue, e.Delay = "damaged", 24*time.Hour })
						add(t, q, func(e *pawl.Envelope) { e.Queue, e.Delay = "sound", time.Minute })
						changeRows(t, q, bucketQueues, func(k []byte) bool { return bytes.Equal(k, row) }, c.change)

						alone, beside := fetching("damaged"), fetching("sound", "damaged")
						require.ErrorIs(t, <-alone, pawl.ErrCorrupt)
						require.ErrorIs(t, <-beside, pawl.ErrCorrupt)
						add(t, q, func(e *pawl.Envelope) { e.Queue = "sound" })
						require.NoError(t, <-fetching("sound"), "a job that is there")
						require.ErrorIs(t, <-fetching("damaged"), pawl.ErrCorrupt)
						due := fetching("sound")
						pass(time.Minute)
						synctest.Wait()
						require.NoError(t, <-due, "a job that falls due")
						require.ErrorIs(t, <-fetching("damaged"), pawl.ErrCorrupt)
					})
				})
			}
		}
	}
}
