// Package guide holds the programs that the pages of the guide quote.
package guide

import (
	"context"
	"log"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
)

type Welcome struct{ To string }

var SendWelcome = pawl.Define[Welcome]("mail.welcome", pawl.MaxRetries(5))

func send(context.Context, string) error { return nil }

// TestMain keeps the log of the programs out of the output of the tests.
func TestMain(m *testing.M) {
	hclog.SetDefault(hclog.NewNullLogger())
	m.Run()
}

// newQueue returns an empty queue in memory.
func newQueue(t *testing.T) *memory.Queue {
	t.Helper()
	q := memory.New(nil)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// alert is what an app does about a dead job.
func alert(job *pawl.Envelope, cause string) { log.Print(job.ID, cause) }
