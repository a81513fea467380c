package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/postgres"
)

// killed is a schema whose processes are killed. They have one name, so each process ends the leases of the
// previous one.
var killed = kills.Engine{
	New: func(t *testing.T) string {
		t.Setenv(serverOfParent, server.url)
		return newSchema(t)
	},
	Work: func(schema string) (kills.Queue, error) {
		return postgres.Open(context.Background(), os.Getenv(serverOfParent), &postgres.Options{
			Schema: schema, Owner: "killed", MaxCrashes: postgres.NoMaxCrashes, Poll: 10 * time.Millisecond, Logger: hclog.NewNullLogger(),
		})
	},
	Look: func(t *testing.T, schema string, fn func(q kills.Queue)) {
		q := open(t, schema)
		fn(q)
		require.NoError(t, q.Close())
	},
	Members: 1000,
}

func TestKilledWithResults(t *testing.T) { killed.Results(t) }
func TestKilledWithCursors(t *testing.T) { killed.Cursors(t) }
func TestKilledWithEdits(t *testing.T)   { killed.Edits(t) }

// With PAWL_KILLS, the group has ten times as many members.
func TestKilledWithAGroup(t *testing.T) {
	e := killed
	if kills.Many() {
		e.Members *= 10
	}
	e.Group(t)
}
