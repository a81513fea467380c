package admin

import (
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a handler that an app has mounted itself reports that the app runs, and which process it
// is.
func TestMountedHandlerIsLive(t *testing.T) {
	server := httptest.NewServer(handlerFor(t, Of(openLive(t)), nil))
	t.Cleanup(server.Close)
	a, err := Dial(t.Context(), server.URL, nil)
	require.NoError(t, err)
	s, err := a.Stats(t.Context())
	require.NoError(t, err)
	require.NotNil(t, s.Process)
	require.Equal(t, os.Getpid(), s.Process.PID)
	require.NoError(t, a.Close())
}
