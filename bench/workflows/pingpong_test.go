package workflows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bench/system"
	"github.com/gopawl/pawl/internal/need"
)

// BenchmarkPingPong measures the rounds of one run on engines that sync each commit. DBOS looks for
// messages in SQLite once a second, so its rounds are few there.
func BenchmarkPingPong(b *testing.B) {
	for _, c := range []struct {
		engine string
		rounds int
	}{
		{pawlName, 100},
		{pawlName, 1_000},
		{dbosFull, 20},
		{"pawl-postgres", 1_000},
		{"dbos-postgres", 1_000},
	} {
		b.Run(fmt.Sprintf("%s/rounds=%d", c.engine, c.rounds), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				took += pingPong(b, c.engine, c.rounds)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N*c.rounds), "µs/round")
		})
	}
}

// Rule: every engine that is compared answers every message once, in their order.
func TestPingPong(t *testing.T) {
	for _, engine := range []string{pawlName, dbosFull} {
		t.Run(engine, func(t *testing.T) { pingPong(t, engine, 2) })
	}
}

func pingPong(t testing.TB, name string, rounds int) time.Duration {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // the server may run as another user
	all := slices.Concat(engines(), onServer())
	i := slices.IndexFunc(all, func(e engine) bool { return e.name == name })
	s, err := all[i].open(t.Context(), dir, 1)
	if errors.Is(err, system.ErrAbsent) {
		need.Server(t, err.Error())
	}
	require.NoError(t, err)
	engine := s
	if served, ok := s.(*servedStore); ok {
		engine = served.store
	}
	took, err := play(t.Context(), engine.(player), rounds)
	require.NoError(t, errors.Join(err, s.close()))
	return took
}
