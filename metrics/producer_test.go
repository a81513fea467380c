package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// figures is a queue and a producer.
type figures struct {
	families []Family
	err      error
}

func (f figures) Stats(context.Context) (pawl.Stats, error)  { return pawl.Stats{}, nil }
func (f figures) Families(context.Context) ([]Family, error) { return f.families, f.err }

// Rule: families of one name from several producers are one, and samples with the same labels are added up, so that
// two workers of a process do not make the page invalid.
func TestProducersAreMerged(t *testing.T) {
	slots := func(busy float64) figures {
		f := NewFamily("pawl_worker_slots", "gauge", "Slots.", "state")
		f.Add(busy, "busy")
		f.Add(1, "\xff")
		return figures{families: []Family{f}}
	}
	families, err := Families(t.Context(), figures{}, nil, slots(2), slots(3))
	require.NoError(t, err)
	require.Equal(t, Family{Name: "pawl_worker_slots", Help: "Slots.", Type: "gauge", Labels: []string{"state"}, Samples: []Sample{
		{Values: []string{"busy"}, Value: 5}, {Values: []string{"\uFFFD"}, Value: 2},
	}}, families[len(families)-1])
}

// Rule: a producer that fails fails the page, which says why.
func TestProducerThatFails(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(figures{}, nil, figures{err: errors.New("the file was replaced")}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "the file was replaced")
}
