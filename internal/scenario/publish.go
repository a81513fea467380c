package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// published returns the values that a run has published.
func published(k *kit, run pawl.ID) map[string]string {
	k.t.Helper()
	values, err := k.e.Published(k.t.Context(), run)
	require.NoError(k.t, err)
	texts := make(map[string]string)
	for name, b := range values {
		var text string
		require.NoError(k.t, driver.DecodePayload(b, &text))
		texts[name] = text
	}
	return texts
}

// reports is a flow whose function and branch publish alternately under one name, a day apart.
func reports() *workflow.Flow[int, int] {
	return workflow.Define("reports", func(r *workflow.Run, round int) (int, error) {
		say := func(r *workflow.Run, text string) error { return workflow.Publish(r, "status", text) }
		if err := say(r, "accepted"); err != nil {
			return 0, err
		}
		half := workflow.Go(r, "half", func(r *workflow.Run) (int, error) {
			if err := workflow.Sleep(r, "work", 24*time.Hour); err != nil {
				return 0, err
			}
			if err := say(r, "half done"); err != nil {
				return 0, err
			}
			if err := workflow.Sleep(r, "work", 24*time.Hour); err != nil {
				return 0, err
			}
			return 0, workflow.Sleep(r, "work", 24*time.Hour)
		})
		if err := say(r, "started"); err != nil { // the function publishes nothing else for days
			return 0, err
		}
		if _, err := half.Wait(r); err != nil {
			return 0, err
		}
		if err := say(r, "done"); err != nil {
			return 0, err
		}
		if err := workflow.Sleep(r, "rest", 24*time.Hour); err != nil {
			return 0, err
		}
		if round == 0 {
			return 0, workflow.Restart(r, 1)
		}
		return 0, say(r, "over")
	})
}

// commits returns the number of the last commit.
func commits(k *kit) int {
	k.t.Helper()
	n, err := k.q.Commits(k.t.Context())
	require.NoError(k.t, err)
	return n
}

// Rule: an older value never replaces a newer published one, after any wake, crash or Restart.
// Publishing a value again costs no commit.
func (suite) Scenario42PublishDoesNotGoBack(t *testing.T, k *kit) {
	k.open(reports())
	h := startAndSettle(k, reports(), "1", 0)
	for range 2 { // rounds
		for i, want := range []string{"started", "half done", "half done", "done"} {
			require.Equal(t, map[string]string{"status": want}, published(k, h.Run()), "%d", i)
			k.crash()
			k.settle()
			require.Equal(t, want, published(k, h.Run())["status"])
			require.NoError(t, k.e.Check(t.Context()))
			if i == 1 {
				before := commits(k)
				require.NoError(t, k.e.Resume(t.Context(), h.Run())) // a commit
				k.settle()
				require.LessOrEqual(t, commits(k), before+2, "it is leased, and suspended again")
			}
			k.pass(24 * time.Hour)
		}
	}
	require.Equal(t, "over", published(k, h.Run())["status"])
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
}

// Rule: an export has the publish counts of a run, so the run publishes nothing twice in the
// other file. A count that no run has is refused.
func (suite) Scenario42PublishedCountsTravel(t *testing.T, k *kit) {
	k.open(reports())
	h := start(k, reports(), "1", 0)
	k.pass(36 * time.Hour)
	rows, err := k.e.Rows(t.Context(), h.Run(), "")
	require.NoError(t, err)
	counts := 0
	for i, row := range rows.Rows {
		if row.In == "published" && row.Key[0] == '_' {
			counts++
			for _, bad := range [][]byte{nil, make([]byte, 7), {0xff, 0, 0, 0, 0, 0, 0, 0}} {
				other := rows
				other.Rows = append([]workflow.Row(nil), rows.Rows...)
				other.Rows[i].Value = bad
				var c workflow.RowsCheck
				_, err := c.Add(&other)
				require.ErrorIs(t, err, pawl.ErrInvalid)
			}
		}
	}
	require.Equal(t, 2, counts)
	var c workflow.RowsCheck
	_, err = c.Add(&rows)
	require.NoError(t, err)
}

// Rule: a run that goes back to a Wait before its end publishes again what it published after
// it.
func (suite) Scenario42PublishBehindTheLastLook(t *testing.T, k *kit) {
	f := workflow.Define("totals", func(r *workflow.Run, _ int) (string, error) {
		total := "none"
		for {
			w, err := word.Wait(r, 0)
			if errors.Is(err, workflow.ErrTimeout) {
				break
			}
			if err != nil {
				return "", err
			}
			total += " " + w
			if err := workflow.Publish(r, "last", w); err != nil {
				return "", err
			}
		}
		if err := workflow.Publish(r, "total", total); err != nil {
			return "", err
		}
		k.at("end")
		return total, nil
	})
	end := k.gate("end")
	k.open(f)
	h := start(k, f, "1", 0)
	<-end.reached
	require.Equal(t, "none", published(k, h.Run())["total"])
	say(k, h.Run(), "one", "")
	close(end.open)
	returns(k, h, "none one")
	require.Equal(t, map[string]string{"last": "one", "total": "none one"}, published(k, h.Run()))
}
