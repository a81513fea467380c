package families

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl/internal/cluster"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/proxy"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// network is a proxy for each slot.
type network []*proxy.Proxy

// newNetwork starts the proxies of a try.
func newNetwork(t *harness.Try, server string) (n network, err error) {
	for slot := range slots {
		p, err := proxy.New(filepath.Join(t.Dir, fmt.Sprint(slot)), server, t.Rand.Uint64())
		if err != nil {
			n.close()
			return nil, err
		}
		n = append(n, p)
	}
	return n, nil
}

func (n network) close() {
	for _, p := range n {
		p.Close()
	}
}

func (n network) url(slot int) string { return cluster.URLOf(n[slot].Folder) }

// set has all proxies make faults.
func (n network) set(f proxy.Faults) {
	for _, p := range n {
		p.Set(f)
	}
}

// cuts is how often connections have been cut.
func (n network) cuts() (all int) {
	for _, p := range n {
		all += p.Cuts().All()
	}
	return all
}

// stage is what a try has whose clients reach the server by proxies.
type stage struct {
	programs
	*cluster.Cluster
	network
	goal int // of the family
}

// proxied returns the Prepare of a family of such tries.
func proxied(try func(*harness.Try, stage) error) func(*harness.Env) (func(*harness.Try) error, error) {
	return func(env *harness.Env) (func(*harness.Try) error, error) {
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
			return try(t, stage{p, c, n, env.Goal})
		}, nil
	}
}

// Cut cuts connections.
var Cut = &harness.Family{
	Name:  "pg-cut",
	Goals: "R3",
	Method: "a proxy cuts connections at any byte, before a COMMIT reaches the server, and before the answer to it " +
		"reaches the client, sometimes for longer than a call waits; then the same comparison",
	Unit: "cuts",
	PR:   150, Nightly: 20_000, Share: 40, Parallel: 1,
	Missing: missing,
	Prepare: proxied(func(t *harness.Try, on stage) error {
		faults := proxy.Faults{Bytes: 1 << (16 + t.Rand.IntN(7)), Commits: 10 << t.Rand.IntN(4), Away: 600 * time.Millisecond}
		return on.play(t, config(on.URL()), on.url, cutsOfTry, func(s *scene.Scene) (int, error) {
			before := on.cuts()
			on.set(faults)
			err := s.Await(50)
			on.set(proxy.Faults{})
			return on.cuts() - before, err
		})
	}),
}

// cutsOfTry is the number of cuts on one schema.
const cutsOfTry = 50

// Partition cuts clients off for a while.
var Partition = &harness.Family{
	Name:  "pg-partition",
	Goals: "R3",
	Method: "a proxy passes nothing for a time that is shorter or longer than a lease, and then passes on what was " +
		"sent, or cuts; then the same comparison, in which no lease may be lost before it expires",
	Unit: "partitions",
	PR:   6, Nightly: 1_000, Share: 40, Parallel: 1,
	Missing: missing,
	Prepare: proxied(func(t *harness.Try, on stage) error {
		c := config(on.URL())
		c.Lease = shortLease
		return on.play(t, c, on.url, partitionsOfTry, func(s *scene.Scene) (int, error) {
			if err := s.Await(t.Rand.IntN(500)); err != nil {
				return 0, err
			}
			least := shortLease / 10
			if t.Rand.IntN(2) == 0 {
				least = shortLease
			}
			on.partition(t, least+time.Duration(t.Rand.Int64N(int64(shortLease*8/10))))
			return 1, nil
		})
	}),
}

// partition cuts a random slot off for a time.
func (n network) partition(t *harness.Try, length time.Duration) {
	cut := n[t.Rand.IntN(slots)]
	cut.Silence()
	time.Sleep(length)
	cut.Heal(t.Rand.IntN(2) == 0)
}

const (
	shortLease      = time.Second // which partitions are compared with
	partitionsOfTry = 3           // on one schema
)
