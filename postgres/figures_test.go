package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/figures"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/postgres"
)

// Rule: after random runs over PostgreSQL, the metrics agree with a model of the queue's events, as they do over
// the engines that module prometheus tests. PAWL_SLOW_TESTS=1 tries a hundred runs.
func TestFiguresAreThoseOfTheEvents(t *testing.T) {
	t.Parallel()
	seeds := uint64(5)
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		seeds = 100
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, schema string) { walkFigures(t, schema, seed) })
		})
	}
}

func walkFigures(t *testing.T, schema string, seed uint64) {
	m := figures.NewModel()
	var tally metrics.Tally
	q, err := postgres.Open(t.Context(), server.url, &postgres.Options{
		Schema: schema, Now: time.Now, NoListen: true, Poll: postgres.NoPoll, Logger: hclog.NewNullLogger(), OnEvent: m.Hear, Collector: &tally,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	compare := func() {
		synctest.Wait()
		families, err := metrics.Families(t.Context(), q, &tally)
		require.NoError(t, err)
		m.RequireEqual(t, figures.Of(families))
	}
	w := &figures.Walk{T: t, Queue: q, Random: rand.New(rand.NewPCG(seed, 1))}
	for range 150 {
		if w.Step(); w.Random.IntN(30) == 0 {
			compare()
		}
	}
	compare()
}
