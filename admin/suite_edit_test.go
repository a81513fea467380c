package admin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// An edit replaces the payload of one job.
func TestSuiteEdits(t *testing.T) { runSuite(t, editCases) }

// editable are the kinds of everyState whose jobs an edit takes, and their state afterwards.
var editable = map[string]pawl.State{
	"dead twice": pawl.Ready, "retry": pawl.Delayed, "delayed": pawl.Delayed, "ready": pawl.Ready, "large": pawl.Ready,
}

var editCases = []suiteCase{
	{"an edit replaces the payload of a waiting or dead job, which keeps all else, and names the old one; other jobs stay", everyState, nil, func(t *testing.T, s *suiteTest) {
		for kind, id := range s.ids {
			before, err := s.Job(t.Context(), id)
			require.NoError(t, err)
			payload := packOf(t, map[string]any{"kind": kind, "edited": strings.Repeat("y", 2000)}) // beyond what lies in a record
			for _, dry := range []bool{true, false} {
				edited, err := s.Edit(t.Context(), Edit{ID: id, Payload: payload, Was: driver.SumOf(before.Payload), DryRun: dry})
				after, readErr := s.Job(t.Context(), id)
				require.NoError(t, readErr)
				state, ok := editable[kind]
				if !ok && (s.live || kind != "leased") {
					require.ErrorIs(t, err, pawl.ErrNotEligible, kind)
					require.Equal(t, before, after, kind)
					continue
				} else if !ok {
					continue // its process is gone, so opening the file makes it ready
				}
				require.NoError(t, err, kind)
				require.False(t, edited.Typed)
				if dry {
					require.Equal(t, before, after, kind)
					continue
				}
				require.Equal(t, state, after.State, kind)
				require.Equal(t, payload, after.Payload, kind)
				require.Equal(t, before.History, after.History, kind)
				past := driver.EditsOf(after)
				require.Len(t, past, 1)
				require.Equal(t, driver.SumOf(before.Payload), past[0].SHA256)
				require.Equal(t, len(before.Payload), past[0].Bytes)
				require.Equal(t, before.Payload, past[0].Payload, "%s: it is short enough to stay readable", kind)
				if state == pawl.Ready && before.State == pawl.Dead {
					require.Zero(t, after.Attempts)
				} else {
					require.Equal(t, before.NotBefore, after.NotBefore, kind)
				}
			}
		}
	}},
	{"an edit of a payload that has changed meanwhile, of no job, or to a large or no payload changes nothing", everyState, nil, func(t *testing.T, s *suiteTest) {
		before, err := s.Job(t.Context(), s.ids["ready"])
		require.NoError(t, err)
		for _, dry := range []bool{true, false} {
			_, err = s.Edit(t.Context(), Edit{ID: before.ID, Payload: []byte{1}, Was: driver.SumOf([]byte{2}), DryRun: dry})
			require.ErrorIs(t, err, pawl.ErrNotEligible)
			_, err = s.Edit(t.Context(), Edit{ID: before.ID, DryRun: dry})
			require.ErrorIs(t, err, pawl.ErrInvalid)
			_, err = s.Edit(t.Context(), Edit{ID: pawl.ID{1}, Payload: []byte{1}, DryRun: dry})
			require.ErrorIs(t, err, pawl.ErrNotFound)
		}
		if s.live { // the options of a stopped app are not known
			_, err = s.Edit(t.Context(), Edit{ID: before.ID, Payload: packOf(t, strings.Repeat("x", pawl.DefaultMaxPayload))})
			require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
		}
		after, err := s.Job(t.Context(), before.ID)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}},
	{"where a worker runs the kind, a payload that does not fit its type is refused by its field, before anything changes", everyState, nil, func(t *testing.T, s *suiteTest) {
		if !s.live {
			t.Skip("no worker runs")
		}
		type args struct{ Count uint8 }
		kind := pawl.Define[args]("dead twice")
		end := driver.ServeTypes(s.q, map[string]func([]byte) error{kind.Name(): func(payload []byte) error {
			_, err := kind.Job(&pawl.Envelope{Kind: kind.Name(), Payload: payload})
			return err
		}})
		before, err := s.Job(t.Context(), s.ids[kind.Name()])
		require.NoError(t, err)
		for field, value := range map[string]any{"Count": "many", "Count: 300": 300, "Counter": 1} {
			name, _, _ := strings.Cut(field, ":")
			_, err := s.Edit(t.Context(), Edit{ID: before.ID, Payload: packOf(t, map[string]any{name: value})})
			require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
			require.ErrorContains(t, err, field)
		}
		after, err := s.Job(t.Context(), before.ID)
		require.NoError(t, err)
		require.Equal(t, before, after)
		edited, err := s.Edit(t.Context(), Edit{ID: before.ID, Payload: packOf(t, map[string]any{"Count": 3})})
		require.NoError(t, err)
		require.True(t, edited.Typed)
		end()
		edited, err = s.Edit(t.Context(), Edit{ID: before.ID, Payload: packOf(t, map[string]any{"Counter": 3})})
		require.NoError(t, err)
		require.False(t, edited.Typed, "the worker has ended")
	}},
	{"after many edits the newest payloads stay readable, and headers keep their limit", everyState, nil, func(t *testing.T, s *suiteTest) {
		id := s.ids["ready"]
		var last []byte
		for i := range 120 {
			last = packOf(t, map[string]any{"i": i, "s": strings.Repeat("z", 900)})
			_, err := s.Edit(t.Context(), Edit{ID: id, Payload: last})
			require.NoError(t, err)
		}
		job, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, last, job.Payload)
		past := driver.EditsOf(job)
		require.NotEmpty(t, past)
		require.LessOrEqual(t, len(job.Headers[driver.HeaderEdits]), pawl.MaxHeaderBytes)
		require.NotEmpty(t, past[len(past)-1].Payload)
	}},
}
