package bolt

import (
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

func TestCloseAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		q := openAt(t, path, nil)
		g := gateCommits(q)
		fetching := started(func() error {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Queues: []string{"empty"}})
			return err
		})
		synctest.Wait()

		reached, leave := g.hold()
		inTime := &pawl.Envelope{Kind: "in time"}
		accepted := started(func() error { return withid.Enqueue(t.Context(), q, inTime) })
		reached()
		late := started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "late"}) })
		synctest.Wait()
		closing := started(q.Close)
		synctest.Wait()
		require.Empty(t, closing, "Close waits for what was accepted")
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "later"}), pawl.ErrClosed, "nothing new comes in meanwhile")
		leave()
		require.NoError(t, <-accepted)
		require.ErrorIs(t, <-late, pawl.ErrClosed)
		require.ErrorIs(t, <-fetching, pawl.ErrClosed)
		require.NoError(t, <-closing)
		require.NoError(t, q.Close(), "a second Close is no error")

		again := openAt(t, path, nil)
		require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, again, pawl.DefaultQueue))
		require.Equal(t, inTime.ID, leaseOne(t, again).ID)
	})
}

func TestUseAfterClose(t *testing.T) {
	q, _, l := prepared(t)
	require.NoError(t, q.Err())
	calls := map[string]func() error{
		"Err":        q.Err,
		"Stats":      func() error { _, err := q.Stats(t.Context()); return err },
		"SaveCursor": func() error { return q.SaveCursor(t.Context(), l, []byte{1}) },
		"Await":      func() error { _, err := q.Await(t.Context(), l.ID); return err },
		"Job":        func() error { _, err := q.Job(t.Context(), l.ID); return err },
		"Jobs": func() error {
			for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.Nil(t, e)
				return err
			}
			return errors.New("no error")
		},
		"Retry":  func() error { return q.Retry(t.Context(), l.ID, false) },
		"Cancel": func() error { return q.Cancel(t.Context(), l.ID) },
		"Transfer": func() error {
			return q.Transfer(t.Context(), &pawl.Envelope{ID: l.ID, Kind: "k"}, nil)
		},
		"Edit":    func() error { return q.Edit(t.Context(), l.ID, []byte{1}, nil) },
		"Mutate":  func() error { return q.Mutate(t.Context(), &ride{}, 0) },
		"RunNow":  func() error { return q.RunNow(t.Context(), l.ID) },
		"Change":  func() error { _, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbDelete}, l.ID); return err },
		"DryRun":  func() error { _, err := q.DryRun(t.Context(), pawl.Change{Verb: pawl.VerbDelete}, l.ID); return err },
		"FindIDs": func() error { _, _, err := q.FindIDs(t.Context(), l.ID.String(), "", 1); return err },
		"List":    func() error { _, err := q.List(t.Context(), pawl.Filter{}, "", 1); return err },
		"ListParts": func() error {
			_, err := q.ListParts(t.Context(), pawl.Filter{}, driver.AllParts, "", 1)
			return err
		},
		"SetLimits":  func() error { return q.SetLimits(t.Context(), "q", nil) },
		"Why":        func() error { _, err := q.Why(t.Context(), l.ID); return err },
		"Dependents": func() error { _, err := q.Dependents(t.Context(), l.ID); return err },
		"Key":        func() error { _, err := q.Key(t.Context(), "q", "k"); return err },
		"Keys":       func() error { _, err := q.Keys(t.Context(), "q", "", 1); return err },
		"Effects":    func() error { _, _, err := q.Effects(t.Context(), "", 1); return err },
		"Restore": func() error {
			return q.Restore(t.Context(), []*pawl.Envelope{{Kind: "k", State: pawl.Ready}}, nil)
		},
		"Throughput":  func() error { _, err := q.Throughput(t.Context(), driver.ThroughputQuery{}); return err },
		"WriteBackup": func() error { _, err := q.WriteBackup(t.Context(), io.Discard); return err },
		"Delete":      func() error { return q.Delete(t.Context(), l.ID) },
		"Pause":       func() error { return q.Pause(t.Context(), "q") },
		"EndRest":     func() error { return q.EndRest(t.Context(), "q", "k") },
		"Resume":      func() error { return q.Resume(t.Context(), "q") },
		"Update":      func() error { return q.Update(t.Context(), func(*bbolt.Tx) error { return nil }) },
		"View":        func() error { return q.View(t.Context(), func(*bbolt.Tx) error { return nil }) },
		"ViewRows":    func() error { return q.ViewRows(t.Context(), func(driver.Reader) error { return nil }) },
		"Check":       func() error { return q.Check(t.Context()) },
		"Backup":      func() error { return q.Backup(t.Context(), filepath.Join(t.TempDir(), "copy")) },
		"Compact":     func() error { return q.Compact(t.Context(), filepath.Join(t.TempDir(), "copy")) },
	}
	for _, op := range operations {
		if op.name == "retry" {
			continue // it reads first
		}
		name := string(op.name[0]-'a'+'A') + op.name[1:]
		if driver.CheckSettle([]pawl.Settlement{{Lease: l, Outcome: pawl.Outcome(op.name)}}) == nil {
			name = "Settle"
		}
		calls[name] = func() error { return op.do(t.Context(), q, l) }
	}
	methods := reflect.TypeFor[*Queue]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		switch {
		case strings.HasSuffix(name, "Tx") || name == "In": // they need a transaction
		case name == "Close" || name == "Path" || name == "MaxPayload" || name == "Listen" || name == "Done" || name == "Now" || name == "Serving" || name == "Abilities" || name == "LastCommit" || name == "Totals" || name == "Recovery": // they cannot fail
		default:
			require.Contains(t, calls, name, "a method that this test does not know")
		}
	}
	require.NoError(t, q.Close())
	for name, call := range calls {
		require.ErrorIs(t, call(), pawl.ErrClosed, name)
	}
}
