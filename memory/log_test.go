package memory_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
)

// Rule: each crash of a job is a line that says how near the job is to its end.
func TestCrashesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		q := memory.New(&memory.Options{Lease: time.Minute, MaxCrashes: 2, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true})})
		defer q.Close()
		job := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), q, job))
		for _, crash := range []string{"1 of 2", "2 of 2"} {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
			require.NoError(t, err)
			time.Sleep(time.Minute) // in virtual time
			_, err = q.Reap(t.Context())
			require.NoError(t, err)
			require.Contains(t, log.String(), "[WARN]  job crashed: id="+job.ID.String()+
				` kind=k queue=default crash="`+crash+`" cause="its lease expired"`+"\n")
		}
	})
}
