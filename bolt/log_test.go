package bolt

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

func logTo(log *lockedBuffer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: log, DisableTime: true})
}

// Rule: an open that takes jobs back logs how many, and each crash of a job is a line that says
// how close the job is to the limit. An open after a clean shutdown logs nothing.
func TestRecoveryIsLogged(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	var log lockedBuffer
	q := openAt(t, path, &Options{MaxCrashes: 3, Logger: logTo(&log)})
	one := add(t, q, nil)
	add(t, q, func(e *pawl.Envelope) { e.Queue = "other" })
	for _, crash := range []string{"1 of 3", "2 of 3", "3 of 3"} {
		require.NotNil(t, leaseOne(t, q))
		require.Empty(t, log.String())
		require.NoError(t, q.Close())
		q = openAt(t, path, &Options{MaxCrashes: 3, Logger: logTo(&log)})
		require.Contains(t, log.String(), "[WARN]  recovered jobs after unclean shutdown: jobs=1\n")
		require.Contains(t, log.String(), "[WARN]  job crashed: id="+one.ID.String()+
			` kind=k queue=default crash="`+crash+`" cause="its process ended"`+"\n")
		log.Reset()
	}
	require.NoError(t, q.Close())
	q = openAt(t, path, &Options{Logger: logTo(&log)})
	require.Empty(t, log.String())
	require.NoError(t, q.Close())
}

// Rule: an expired lease is a crash in the log, without a limit if none is set.
func TestExpiryIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		q := openTest(t, &Options{MaxCrashes: NoMaxCrashes, Logger: logTo(&log)})
		add(t, q, nil)
		for _, crash := range []string{"crash=1 ", "crash=2 "} {
			leaseOne(t, q)
			expire(q)
			require.Contains(t, log.String(), "[WARN]  job crashed: ")
			require.Contains(t, log.String(), crash+`cause="its lease expired"`)
			log.Reset()
		}
	})
}

// Rule: many crashes do not flood the log, and their sum is right.
func TestManyCrashesAreSummedUp(t *testing.T) {
	const maxCrashLines = 100 // as in package driver
	path := filepath.Join(memoryFolder(t), "jobs.db")
	var log lockedBuffer
	q := openAt(t, path, nil)
	for range maxCrashLines + 7 {
		add(t, q, nil)
	}
	require.Len(t, fetch(t, q, maxCrashLines+7), maxCrashLines+7)
	require.NoError(t, q.Close())
	openAt(t, path, &Options{Logger: logTo(&log)})
	require.Equal(t, maxCrashLines, strings.Count(log.String(), " job crashed: "))
	require.Contains(t, log.String(), "more jobs crashed: jobs=7\n")
	require.Contains(t, log.String(), "recovered jobs after unclean shutdown: jobs=107\n")
}

// Rule: a damaged row that an app's transaction skips is logged once that commits, and not if it is rolled back. A row
// is logged once, however often and by whatever transaction it is skipped.
func TestDamageInAnAppsTransactionIsLogged(t *testing.T) {
	for name, own := range map[string]bool{"Update": false, "the app's own": true} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			opts := &Options{Logger: logTo(&log), Limits: perKey(2).Limits}
			db := openApp(t)
			q := openOver(t, db, opts)
			update := func(fn func(tx *bbolt.Tx) error) error { return q.Update(t.Context(), fn) }
			if own {
				update = db.Update
			}
			ack := func(l *pawl.Lease, end error) {
				require.Equal(t, end, update(func(tx *bbolt.Tx) error {
					require.NoError(t, q.AckTx(tx, l))
					require.NotContains(t, log.String(), "damaged")
					return end
				}))
			}
			addKeyed(t, q, 4, "a")
			leases := fetch(t, q, 2)
			flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
			ack(leases[0], errRolledBack)
			require.NotContains(t, log.String(), "damaged")
			ack(leases[0], nil)
			const line = "[ERROR] a damaged row is passed over: error="
			require.Equal(t, 1, strings.Count(log.String(), line), log.String())
			require.Contains(t, log.String(), "of bucket keys: ")
			flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
			require.NoError(t, q.Settle(t.Context(), leases[1].Ack()))
			require.Equal(t, 1, strings.Count(log.String(), line), log.String())
		})
	}
}
