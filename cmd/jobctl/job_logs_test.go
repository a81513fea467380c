package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// jobNotes fills a file with a running job that has a noted progress and log lines, and a dead job with
// log lines.
func jobNotes(f *file) {
	notes := driver.NewNotes(f.q)
	for n, kind := range []string{"running", "dead"} {
		f.add(pawl.Envelope{Kind: kind})
		leases, err := f.q.Fetch(context.Background(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.NoError(f.t, err)
		l := leases[0]
		l.Started = time.Unix(int64(n), 0)
		ctx := driver.RunContext(context.Background(), f.q, l, notes)
		pawl.Log(ctx).Info("begun", "evil", "\x1b[2J")
		job := &pawl.Job[string]{Envelope: l.Envelope, Lease: l}
		job.Progress(412, 10_000, "page 412")
		_, err = notes.Store(ctx)
		require.NoError(f.t, err)
		if kind == "dead" {
			require.NoError(f.t, f.q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errors.New("no"))))
		}
	}
}

// Rule: a log that grows is printed once, whatever of it is still kept.
func TestAddedLines(t *testing.T) {
	l := &pawl.RunLog{Head: "a\nb\n"}
	require.Equal(t, []string{"a", "b"}, added(l, 0))
	require.Equal(t, []string{"b"}, added(l, 2))
	require.Empty(t, added(l, 4))
	l.Tail = "c\nd\n"
	require.Equal(t, []string{"c", "d"}, added(l, 4))
	require.Equal(t, []string{"d"}, added(l, 6))
	l = &pawl.RunLog{Head: "a\nb\n", Dropped: 4, Tail: "e\nf\n"}
	require.Equal(t, []string{"a", "b", "… 4 bytes not kept …", "e", "f"}, added(l, 0))
	require.Equal(t, []string{"… 2 bytes not kept …", "e", "f"}, added(l, 6), "c was printed, and d is gone")
	require.Equal(t, []string{"e", "f"}, added(l, 8))
	require.Equal(t, []string{"f"}, added(l, 10))
	require.Empty(t, strings.Join(added(l, 12), ""))
}
