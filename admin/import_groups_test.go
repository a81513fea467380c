package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/group"
)

// groupLine returns the line of a group with both callbacks.
func groupLine(t testing.TB, name string) string {
	t.Helper()
	q := transferQueue(t)
	require.NoError(t, group.Make(t.Context(), q, group.Group{Name: name, Done: &pawl.Envelope{Kind: "done"}, Success: &pawl.Envelope{Kind: "success"}}))
	rows, err := group.ReadRows(t.Context(), q, "", 1)
	require.NoError(t, err)
	line, err := json.Marshal(exportLine{Group: exportGroupOf(&rows[0])})
	require.NoError(t, err)
	return string(line)
}

// settleAll runs all jobs that are ready: those of kind "fails" die, and the others succeed.
func settleAll(t *testing.T, q *bolt.Queue) {
	t.Helper()
	for {
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 10, Wait: pawl.WaitNot})
		if errors.Is(err, pawl.ErrEmpty) {
			return
		}
		require.NoError(t, err)
		for _, l := range leases {
			s := l.Ack()
			if l.Kind == "fails" && l.Failures == 0 {
				s = l.Abandon(pawl.ReasonPermanent, errors.New("no"))
			}
			require.NoError(t, q.Settle(t.Context(), s))
		}
	}
}

// groupedQueue has group "g": one member succeeded, one is dead, one was removed, and two are pending.
func groupedQueue(t *testing.T) *bolt.Queue {
	t.Helper()
	q := transferQueue(t)
	require.NoError(t, group.Make(t.Context(), q, group.Group{
		Name: "g", Done: &pawl.Envelope{Kind: "done", Payload: []byte("\xa1d")}, Success: &pawl.Envelope{Kind: "success"}}))
	made, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "fails", Group: "g"}, &pawl.Envelope{Kind: "fails", Group: "g"}, &pawl.Envelope{Kind: "k", Group: "g"})
	require.NoError(t, err)
	settleAll(t, q)
	errs, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbDelete}, made[0].ID)
	require.NoError(t, errors.Join(append(errs, err)...))
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Group: "g"}, &pawl.Envelope{Kind: "k", Group: "g"})
	require.NoError(t, err)
	return q
}

func groupOf(t *testing.T, q *bolt.Queue, name string) group.Status {
	t.Helper()
	s, err := group.Get(t.Context(), q, name)
	require.NoError(t, err)
	return s
}

// Rule: an import stores the groups of an export with their counts and callbacks. In the target they end once, and
// enqueue what is due, whatever IDs the jobs have there.
func TestGroupsTravel(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("keep IDs: %t", keep), func(t *testing.T) {
			from, to := groupedQueue(t), transferQueue(t)
			require.NoError(t, group.Make(t.Context(), from, group.Group{Name: "ended", Done: &pawl.Envelope{Kind: "done"}}))
			require.NoError(t, group.Close(t.Context(), from, "ended"))
			export := exportOf(t, Of(from))
			options := &ImportOptions{KeepIDs: keep, DryRun: true}
			dry, err := Import(t.Context(), Of(to), strings.NewReader(export), options)
			require.NoError(t, err)
			options.DryRun = false
			imported, err := Import(t.Context(), Of(to), strings.NewReader(export), options)
			require.NoError(t, err)
			require.Equal(t, Imported{Version: ExportVersion, Checked: 4, Jobs: 4, Groups: 2}, imported)
			require.Equal(t, imported, dry)

			want, got := groupOf(t, from, "g"), groupOf(t, to, "g")
			require.Equal(t, [...]int{5, 2, 1, 1, 1}, [...]int{got.Total, got.Pending, got.Succeeded, got.Dead, got.Removed})
			require.Equal(t, keep, want.Done.ID == got.Done.ID)
			got.Done.ID, got.Success.ID = want.Done.ID, want.Success.ID
			require.Equal(t, want, got)
			ended := groupOf(t, to, "ended")
			require.True(t, ended.Done.Enqueued)
			_, err = to.Job(t.Context(), ended.Done.ID)
			require.NoError(t, err, "its callback, which is a job")

			_, err = Import(t.Context(), Of(to), strings.NewReader(export), options)
			require.ErrorIs(t, err, pawl.ErrConflict)
			require.ErrorContains(t, err, "nothing was stored")

			settleAll(t, to)
			require.NoError(t, group.Close(t.Context(), to, "g"))
			got = groupOf(t, to, "g")
			require.True(t, got.Done.Enqueued)
			require.False(t, got.Success.Enqueued, "a member is dead")
			e, err := to.Job(t.Context(), got.Done.ID)
			require.NoError(t, err)
			require.Equal(t, "\xa1d", string(e.Payload))
		})
	}
}

// Rule: a group whose last member ends while its export is written ends in the target: with its callback if it was
// not enqueued there yet, and with the job that it had become if it was.
func TestGroupEndsDuringAnExport(t *testing.T) {
	for _, enqueued := range []bool{false, true} {
		t.Run(fmt.Sprintf("callback enqueued: %t", enqueued), func(t *testing.T) {
			from, to := transferQueue(t), transferQueue(t)
			done := pawl.NewID(time.Now())
			require.NoError(t, group.Make(t.Context(), from, group.Group{Name: "g", Done: &pawl.Envelope{ID: done, Kind: "done"}}))
			_, err := from.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Group: "g"})
			require.NoError(t, err)
			require.NoError(t, group.Close(t.Context(), from, "g"))
			rows, err := group.ReadRows(t.Context(), from, "", 10)
			require.NoError(t, err)
			if enqueued {
				e := simpleJob(1, func(e *pawl.Envelope) { e.ID, e.Kind = done, "done" })
				require.NoError(t, to.Restore(t.Context(), []*pawl.Envelope{e}, nil))
			}
			require.NoError(t, Of(to).Groups().RestoreRows(t.Context(), &rows[0]))
			s := groupOf(t, to, "g")
			require.Equal(t, [...]any{1, 0, 1, true}, [...]any{s.Total, s.Pending, s.Removed, s.Done.Enqueued})
			require.Len(t, jobsIn(t, to), 1)
		})
	}
}

// Rule: an export of some jobs has no groups. With SkipExisting a group whose name is taken is left out.
func TestSomeGroups(t *testing.T) {
	from, to := groupedQueue(t), transferQueue(t)
	var b bytes.Buffer
	done, err := Export(t.Context(), Of(from), &b, &ExportOptions{Filter: Filter{Filter: pawl.Filter{Queue: "default"}}})
	require.NoError(t, err)
	require.Zero(t, done.Groups)

	require.NoError(t, group.Make(t.Context(), to, group.Group{Name: "g"}))
	imported, err := Import(t.Context(), Of(to), strings.NewReader(exportLines(groupLine(t, "g"), groupLine(t, "h"))), &ImportOptions{SkipExisting: true})
	require.NoError(t, err)
	require.Equal(t, [...]int64{1, 1}, [...]int64{imported.Groups, imported.GroupsSkipped})
	require.True(t, groupOf(t, to, "g").Done.ID.IsZero(), "that of the target")
	require.False(t, groupOf(t, to, "h").Done.ID.IsZero())
}

// Rule: rows of groups that no queue has written are refused, and nothing is stored.
func TestHostileGroups(t *testing.T) {
	sound := groupLine(t, "g")
	for name, line := range map[string]string{
		"twice":               sound + "\n" + sound,
		"no name":             strings.Replace(sound, `"name":"g"`, `"name":""`, 1),
		"a newer form":        strings.Replace(sound, `"form":1`, `"form":9`, 1),
		"no form":             strings.Replace(sound, `"form":1`, `"form":0`, 1),
		"an empty row":        `{"group":{"name":"g","form":1,"row":"","callbacks":[]}}`,
		"callbacks missing":   sound[:strings.Index(sound, `"callbacks"`)] + `"callbacks":[]}}`,
		"a callback of no ID": strings.Replace(sound, `"which":1`, `"which":7`, 1),
		"two of one kind":     strings.Replace(sound, `"which":1`, `"which":0`, 1),
	} {
		to := transferQueue(t)
		_, err := Import(t.Context(), Of(to), strings.NewReader(exportLines(strings.Split(line, "\n")...)), nil)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "nothing was stored", name)
		list, err := group.List(t.Context(), to, "", 10)
		require.NoError(t, err)
		require.Empty(t, list, name)
	}
}
