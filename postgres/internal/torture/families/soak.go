package families

import (
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/proxy"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// Soak draws each fault from those of one server, while many jobs run.
var Soak = &harness.Family{
	Name:  "pg-soak",
	Goals: "R1, R2, R3",
	Method: "the faults of pg-kill, pg-server, pg-cut, and pg-partition in random order, amid some 100 000 jobs in one " +
		"schema; then the same comparison",
	Unit: "acknowledged jobs",
	PR:   10_000, Nightly: 1_000_000, Share: 40, Parallel: 1,
	Missing: missing,
	Prepare: proxied(func(t *harness.Try, on stage) error {
		stored := 0
		return on.play(t, config(on.URL()), on.url, min(jobsOfSoak, on.goal), func(s *scene.Scene) (int, error) {
			err := s.Await(t.Rand.IntN(answersOfSoak))
			if err == nil {
				err = on.disturb(t, s)
			}
			before := stored
			stored = s.Stored()
			return stored - before, err
		})
	}),
}

// disturb makes a random fault.
func (on stage) disturb(t *harness.Try, s *scene.Scene) (err error) {
	switch t.Rand.IntN(4) {
	case 0:
		slot := s.Kill()
		return s.Start(slot, on.url(slot))
	case 1:
		on.Kill(signals[t.Rand.IntN(len(signals))])
		return on.Start(s.Context())
	case 2:
		on.set(proxy.Faults{Bytes: 1 << 20, Commits: 40, Away: 600 * time.Millisecond})
		err = s.Await(50)
		on.set(proxy.Faults{})
	case 3:
		on.partition(t, time.Duration(t.Rand.Int64N(int64(2*lease))))
	}
	return err
}

const (
	jobsOfSoak    = 100_000 // on one schema
	answersOfSoak = 4_000   // between two faults, at most
)
