package admin

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Rule: exports and imports give the same result for a running app: over HTTP, with the smallest
// bodies that a handler accepts, nothing is lost.
func TestRoundTripOverHTTP(t *testing.T) {
	ask := func(a Admin) Admin {
		s := httptest.NewServer(handlerFor(t, a, &HandlerOptions{Logger: hclog.NewNullLogger()}))
		t.Cleanup(s.Close)
		client, err := Dial(t.Context(), s.URL, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		return client
	}
	for rule, from := range map[string]func(*testing.T) Admin{
		"jobs with all fields":  func(t *testing.T) Admin { return Of(fullQueue(t, fullKeys(t))) },
		"as many as a body has": func(t *testing.T) Admin { return Of(simpleQueue(t, MaxLimit+100, nil)) },
		"as large as a body is": func(t *testing.T) Admin {
			return Of(simpleQueue(t, 150, func(i int, e *pawl.Envelope) { e.Payload = make([]byte, i*50) }))
		},
	} {
		t.Run(rule, func(t *testing.T) {
			from, to := from(t), transferQueue(t)
			export := exportOf(t, ask(from))
			require.Equal(t, comparable(exportOf(t, from)), comparable(export))
			_, err := Import(t.Context(), ask(Of(to)), strings.NewReader(export), &ImportOptions{KeepIDs: true})
			require.NoError(t, err)
			requireSameJobs(t, from.(local).q.(*bolt.Queue), to)
		})
	}
}
