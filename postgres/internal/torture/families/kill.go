package families

import (
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// Kill kills clients.
var Kill = &harness.Family{
	Name:  "pg-kill",
	Goals: "R2",
	Method: "SIGKILL of one of several processes that enqueue, fetch, settle, and run workflows on one server; " +
		"then the end of each job and run is compared with the reports of all processes",
	Unit: "kills",
	PR:   24, Nightly: 2_000, Share: 45, Parallel: 1,
	Missing: missing,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		p, c, err := newStage(env)
		if err != nil {
			return nil, err
		}
		return func(t *harness.Try) error {
			return p.play(t, config(c.URL()), always(c.URL()), killsOfTry, func(s *scene.Scene) (int, error) {
				if err := s.Await(t.Rand.IntN(500)); err != nil {
					return 0, err
				}
				return 1, s.Start(s.Kill(), c.URL())
			})
		}, nil
	},
}

// killsOfTry is the number of kills on one schema.
const killsOfTry = 4

// Server kills the server.
var Server = &harness.Family{
	Name:  "pg-server",
	Goals: "R1",
	Method: "immediate shutdown (SIGQUIT) of the server, or SIGKILL of its first process, amid the work of several " +
		"processes, and its start at once; then the same comparison",
	Unit: "restarts",
	PR:   6, Nightly: 500, Share: 45, Parallel: 1,
	Missing: missing,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		p, c, err := newStage(env)
		if err != nil {
			return nil, err
		}
		return func(t *harness.Try) error {
			return p.play(t, config(c.URL()), always(c.URL()), restartsOfTry, func(s *scene.Scene) (int, error) {
				if err := s.Await(t.Rand.IntN(1000)); err != nil {
					return 0, err
				}
				c.Kill(signals[t.Rand.IntN(len(signals))])
				return 1, c.Start(s.Context())
			})
		}, nil
	},
}

// restartsOfTry is the number of restarts on one schema.
const restartsOfTry = 2
