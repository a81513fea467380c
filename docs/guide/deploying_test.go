package guide

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

type Report struct {
	Month string
	Pages int
}

// RenderReport was called "report.pdf" until October, and its jobs had a field Color.
var RenderReport = pawl.Define[Report]("report.render",
	pawl.Alias("report.pdf"),
	pawl.AllowUnknownFields())

// Rule: a kind runs the jobs that were enqueued under its old name, without the field that is gone.
func TestRenamedKind(t *testing.T) {
	type oldReport struct {
		Month, Color string
	}
	q := newQueue(t)
	_, err := pawl.Define[oldReport]("report.pdf").Enqueue(t.Context(), q, oldReport{Month: "2026-10", Color: "red"})
	require.NoError(t, err)
	w := worker.New(q, nil)
	var got Report
	worker.Handle(w, RenderReport, func(_ context.Context, job *pawl.Job[Report]) error {
		got = job.Args
		return nil
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	require.Equal(t, Report{Month: "2026-10"}, got)
}

// openAfterDeploy waits for the old process of a rolling deploy.
func openAfterDeploy(path string) (*bolt.Queue, error) {
	return bolt.Open(path, &bolt.Options{
		LockTimeout: 15 * time.Second, // the old process may take 9 s to stop
	})
}

// signedWorker runs only jobs that a holder of the secret made.
func signedWorker(ctx context.Context, q *bolt.Queue, secret []byte) (*worker.Worker, error) {
	keys, err := pawl.NewKeyring("2026-11", map[string][]byte{"2026-11": secret})
	if err != nil {
		return nil, err
	}
	if _, err := SendWelcome.Enqueue(ctx, keys.Signing(q), Welcome{To: "ada@example.com"}); err != nil {
		return nil, err
	}
	return worker.New(q, &worker.Options{Verify: keys}), nil
}

var _, _ = openAfterDeploy, signedWorker
