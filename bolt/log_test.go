package bolt

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

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
