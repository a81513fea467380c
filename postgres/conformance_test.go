package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/queuetest"
)

var (
	_ admin.Store    = (*postgres.Queue)(nil)
	_ admin.Listener = (*postgres.Queue)(nil)

	_ admin.LimitSetter = (*postgres.Queue)(nil)
	_ admin.Editor      = (*postgres.Queue)(nil)

	_ driver.NoteStore = (*postgres.Queue)(nil)
)

// TestConformance runs the suite of the contract, with one client at a time and with several. The
// queue has every ability.
func TestConformance(t *testing.T) {
	newSchema(t)         // or skip
	var schemas sync.Map // by folder
	free := newFreeSchemas(t, "")
	open := func(owner string, poll time.Duration) queuetest.Open {
		return func(t testing.TB, dir string, s queuetest.Settings) pawl.Queue {
			schema, known := schemas.Load(dir)
			if !known {
				schema = free.take(t)
				schemas.Store(dir, schema)
			}
			now := s.Now
			if now == nil {
				now = time.Now // which is virtual, unlike the clock of the server
			}
			q, err := postgres.Open(t.Context(), free.url, &postgres.Options{
				Schema: schema.(string), Owner: owner, Poll: poll, NoListen: true, // a notification does not come in virtual time
				Limits: s.Limits, Lease: s.Lease, MaxCrashes: max(s.MaxCrashes, postgres.NoMaxCrashes), Now: now,
				OnEvent: s.OnEvent, Collector: s.Collector,
				Logger: hclog.NewNullLogger(),
			})
			require.NoError(t, err)
			return q
		}
	}
	queuetest.Run(t, open("suite", postgres.NoPoll), &queuetest.Config{
		Persists: true,
		Alone:    true, // by the name of the owner: the next client with that name is the successor
		Another:  open("", 10*time.Second),
		Counts:   counts,
		Events:   true,
		Parallel: true,

		Walks: race.Fewer(4), CounterSteps: race.Fewer(2000), // each step is a commit
	})
}

func counts(ctx context.Context, q pawl.Queue) (map[string]pawl.Counts, error) {
	stats, err := q.(*postgres.Queue).Stats(ctx)
	all := make(map[string]pawl.Counts)
	for _, row := range stats.Queues {
		all[row.Name] = row.Counts
	}
	return all, err
}

// freeSchemas are schemas that earlier cases used and left empty. To empty one takes a tenth of the
// time that a new one takes.
type freeSchemas struct {
	owner *testing.T // whose end they go with
	url   string     // of the server
	app   string     // empties the tables of the app
	mu    sync.Mutex
	names []string
}

func newFreeSchemas(owner *testing.T, app string) *freeSchemas {
	return &freeSchemas{owner: owner, url: reuseConnections(owner).url, app: app}
}

// take returns an empty schema, which is free again after the case.
func (s *freeSchemas) take(t testing.TB) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var name string
	if n := len(s.names); n > 0 {
		name, s.names = s.names[n-1], s.names[:n-1]
	} else {
		name = newSchema(s.owner)
	}
	t.Cleanup(func() {
		executeAt(t, s.url, strings.ReplaceAll(emptied+s.app, "pawl.", name+"."))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names = append(s.names, name)
	})
	return name
}

// emptied empties the tables of a queue.
const emptied = `DELETE FROM pawl.job; DELETE FROM pawl.history; DELETE FROM pawl.after; DELETE FROM pawl.progress; DELETE FROM pawl.log; DELETE FROM pawl.claim; DELETE FROM pawl.uniq;
DELETE FROM pawl.effect; DELETE FROM pawl.limits; DELETE FROM pawl.declared; DELETE FROM pawl.bound; DELETE FROM pawl.front; DELETE FROM pawl.pace; DELETE FROM pawl.turn; DELETE FROM pawl.process; DELETE FROM pawl.line; DELETE FROM pawl.queue;
DELETE FROM pawl.kv; DELETE FROM pawl.kv_table;
SELECT setval('pawl.seq', 1024, false)`
