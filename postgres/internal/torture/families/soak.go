package families

import (
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/proxy"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// Soak draws each fault from those of one server, amid many jobs.
var Soak = &harness.Family{
	Name:  "pg-soak",
	Goals: "R1, R2, R3",
	Method: "the faults of pg-kill, pg-server, pg-cut, and pg-partition in random order, amid some 100 000 jobs in one " +
		"schema; then the same comparison",
	Unit: "acknowledged jobs",
	PR:   10_000, Nightly: 1_000_000, Share: 40, Parallel: 1,
	Missing: missing,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		p, c, err := newStage(env)
		if err != nil {
			return nil, err
		}
		return func(t *harness.Try) error {
			n, err := newNetwork(t, c.Folder)
			if err != nil {
				return err
			}
			defer n.close()
			stored := 0
			return p.play(t, config(c.URL()), n.url, min(jobsOfSoak, env.Goal), func(s *scene.Scene) (int, error) {
				if err := s.Await(t.Rand.IntN(answersOfSoak)); err != nil {
					return 0, err
				}
				switch t.Rand.IntN(4) {
				case 0:
					slot := s.Kill()
					err = s.Start(slot, n.url(slot))
				case 1:
					c.Kill(signals[t.Rand.IntN(len(signals))])
					err = c.Start(s.Context())
				case 2:
					n.set(proxy.Faults{Bytes: 1 << 20, Commits: 40, Away: 600 * time.Millisecond})
					err = s.Await(50)
					n.set(proxy.Faults{})
				case 3:
					cut := n[t.Rand.IntN(slots)]
					cut.Silence()
					time.Sleep(time.Duration(t.Rand.Int64N(int64(2 * lease))))
					cut.Heal(t.Rand.IntN(2) == 0)
				}
				before := stored
				stored = s.Stored()
				return stored - before, err
			})
		}, nil
	},
}

const (
	jobsOfSoak    = 100_000 // on one schema
	answersOfSoak = 4_000   // between two faults, at most
)
