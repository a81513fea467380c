package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
)

// Operators see groups, and end them, wherever the queue is.
func TestSuiteGroups(t *testing.T) { runSuite(t, groupCases) }

// grouped makes group "a" with two members and both callbacks, and group "b", which has ended.
func grouped(f *fixture) {
	ctx := f.t.Context()
	require.NoError(f.t, group.Make(ctx, f.q, group.Group{
		Name: "a", Done: &pawl.Envelope{ID: pawl.ID{1}, Kind: "done"}, Success: &pawl.Envelope{ID: pawl.ID{2}, Kind: "success"},
	}))
	f.add(pawl.Envelope{Kind: "first", Group: "a"})
	f.add(pawl.Envelope{Kind: "second", Group: "a"})
	require.NoError(f.t, group.Make(ctx, f.q, group.Group{Name: "b"}))
	require.NoError(f.t, group.Close(ctx, f.q, "b"))
}

var groupCases = []suiteCase{
	{"groups are listed page by page in the order of their names", grouped, nil, func(t *testing.T, s *suiteTest) {
		list, next, err := s.Groups().List(t.Context(), "", 1)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, [...]any{"a", "a", 2, 2}, [...]any{next, list[0].Name, list[0].Total, list[0].Pending})
		list, next, err = s.Groups().List(t.Context(), next, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, [...]any{"", "b", true}, [...]any{next, list[0].Name, list[0].Closed})
		_, _, err = s.Groups().List(t.Context(), "", -1)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}},
	{"a closed group ends once its members are cancelled, and its callback is enqueued", grouped, nil, func(t *testing.T, s *suiteTest) {
		g := s.Groups()
		require.NoError(t, g.Close(t.Context(), "a"))
		n, err := g.Cancel(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 2, n)
		is, err := g.Show(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, [...]any{2, 0, 2, true}, [...]any{is.Total, is.Pending, is.Dead, is.Closed})
		require.Equal(t, [...]group.Callback{{ID: pawl.ID{1}, Enqueued: true}, {ID: pawl.ID{2}}}, [...]group.Callback{is.Done, is.Success})
		require.Equal(t, "ended", GroupOf(&is).State)
		_, err = s.Job(t.Context(), pawl.ID{1})
		require.NoError(t, err)
	}},
	{"a group that nobody made is not found", grouped, nil, func(t *testing.T, s *suiteTest) {
		g := s.Groups()
		_, err := g.Show(t.Context(), "c")
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.ErrorIs(t, g.Close(t.Context(), "c"), pawl.ErrNotFound)
		_, err = g.Cancel(t.Context(), "c")
		require.ErrorIs(t, err, pawl.ErrNotFound)
	}},
}
