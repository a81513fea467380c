package admin

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/internal/withid"
)

// Once the file is unusable, a change explains that once, and each later change is refused.
func TestFileReportsAnOverwrittenFile(t *testing.T) {
	f := stoppedApp(t, func(f *fixture) { f.many(500, pawl.Envelope{Kind: "many"}) })
	var said noticed
	a := offlineFile(f.path, &offline.Options{Now: f.now, Notice: said.hear})
	require.NoError(t, a.Pause(t.Context(), "email"))
	require.NoError(t, os.Truncate(f.path, 8192)) // the queue loses its pages while they are in use
	for range 2 {
		err := withid.Enqueue(t.Context(), a, &pawl.Envelope{Kind: "x"})
		require.ErrorIs(t, err, pawl.ErrPoisoned)
		require.ErrorIs(t, err, bolt.ErrOverwritten)
	}
	require.Len(t, said.texts, 1)
	require.True(t, strings.HasPrefix(said.texts[0], "another program replaced or overwrote the file"), said.texts[0])
	_ = a.Close()
}
