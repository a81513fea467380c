package families

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl/internal/cluster"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// Failover promotes a standby.
var Failover = &harness.Family{
	Name:  "pg-failover",
	Goals: "R1",
	Method: "the primary is killed amid the work of several processes, and its synchronous standby is promoted; " +
		"clients go over by a connection string of two hosts, or by a proxy; then the same comparison",
	Unit: "failovers",
	PR:   2, Nightly: 100, Share: 35, Parallel: 1,
	Missing: missing,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		if err := os.Chmod(env.Disk, 0o711); err != nil {
			return nil, err
		}
		p, err := buildPrograms(env)
		if err != nil {
			return nil, err
		}
		return func(t *harness.Try) error { return p.failover(t, env.Disk) }, nil
	},
}

// standby is the name of the standby for its primary.
const standby = "standby"

// failover makes two clusters and loses the first one.
func (p programs) failover(t *harness.Try, disk string) error {
	ctx := context.WithoutCancel(t.Ctx) // a try that has begun is judged
	primary, err := cluster.New(ctx, filepath.Join(disk, fmt.Sprint(t.Seed, "-p")), "max_connections=200", "synchronous_standby_names="+standby)
	if err != nil {
		return err
	}
	defer primary.Close()
	// Commits wait for the standby, and so do clients, which start after it.
	if err := primary.Start(ctx); err != nil {
		return err
	}
	second, err := primary.Standby(ctx, filepath.Join(disk, fmt.Sprint(t.Seed, "-s")), standby, "max_connections=200")
	if err != nil {
		return err
	}
	defer second.Close()
	if err := second.Start(ctx); err != nil {
		return err
	}
	n, err := newNetwork(t, primary.Folder)
	if err != nil {
		return err
	}
	defer n.close()
	url := func(slot int) string {
		if slot == 0 {
			return n.url(slot)
		}
		return cluster.URLOf(primary.Folder, second.Folder)
	}
	return p.play(t, config(cluster.URLOf(primary.Folder, second.Folder)), url, 1, func(s *scene.Scene) (int, error) {
		if err := s.Await(500 + t.Rand.IntN(1000)); err != nil {
			return 0, err
		}
		primary.Kill(signals[t.Rand.IntN(len(signals))])
		if err := second.Promote(s.Context()); err != nil {
			return 0, err
		}
		for _, link := range n {
			link.Lead(second.Folder)
		}
		return 1, s.Await(500)
	})
}
