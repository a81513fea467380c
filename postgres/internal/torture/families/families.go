// Package families has the families of faults over PostgreSQL. Each makes its own cluster with durable
// settings, lets several processes work on it, and disturbs them.
package families

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gopawl/pawl/internal/cluster"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/client"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// All are all families, in the order of the table.
var All = append(disturbed, Schedule)

// disturbed are the families whose clients work on jobs and runs.
var disturbed = []*harness.Family{Kill, Server, Cut, Partition, Failover, Soak}

// slots is the number of clients that work at a time.
const slots = 3

// lease is the length of a lease where no family needs another one. A client that was killed delays the end
// of a try by as long.
const lease = 2 * time.Second

// plant is the fault that every client has, for tests.
var plant client.Fault

// newStage builds the programs, and starts the cluster, for the tries of a family.
func newStage(env *harness.Env) (programs, *cluster.Cluster, error) {
	p, err := buildPrograms(env)
	if err != nil {
		return "", nil, err
	}
	c, err := newCluster(env)
	return p, c, err
}

// newCluster starts a cluster for the tries of a family.
func newCluster(env *harness.Env) (*cluster.Cluster, error) {
	if err := os.Chmod(env.Disk, 0o711); err != nil { // the server has its own user
		return nil, err
	}
	c, err := cluster.New(env.Ctx, filepath.Join(env.Disk, "server"), "max_connections=200")
	if err != nil {
		return nil, err
	}
	env.Cleanup(c.Close)
	return c, c.Start(env.Ctx)
}

// signals end a server: immediately, or without any cleanup.
var signals = []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL}

// play runs a try on a server that has no fault in the end. Clients start, disturb makes a number of faults
// one after another, and the scene is judged. Then the programs work on the server, and their books are
// judged. URL is how the client of a slot reaches the server. A try that has begun is judged even if time
// is up.
func (p programs) play(t *harness.Try, c scene.Config, url func(slot int) string, faults int, disturb func(*scene.Scene) (counted int, err error)) error {
	s, err := scene.New(t, c)
	if err != nil {
		return err
	}
	defer s.End()
	for slot := range slots {
		if err := s.Start(slot, url(slot)); err != nil {
			return err
		}
	}
	units := 0
	for units == 0 || units < faults && !t.Enough() {
		n, err := disturb(s)
		if err != nil {
			return report(t, s, err)
		}
		units += n
	}
	if err := s.Await(100); err != nil {
		return report(t, s, err)
	}
	if err := s.Judge(c.URL); err != nil {
		return report(t, s, err)
	}
	if err := p.run(s.Context(), t, c.URL); err != nil {
		return report(t, s, err)
	}
	t.Count(units)
	return nil
}

// report reports an error even if time is up. An interruption is none.
func report(t *harness.Try, s *scene.Scene, err error) error {
	if s.Context().Err() == nil {
		t.Violate(err)
	}
	t.Count(0)
	return nil
}

// config is what the clients of a try have in common.
func config(server string) scene.Config { return scene.Config{URL: server, Lease: lease, Fault: plant} }

// always is the URL of all slots.
func always(url string) func(int) string { return func(int) string { return url } }
