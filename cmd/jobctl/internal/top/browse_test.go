package top

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	tea "charm.land/bubbletea/v2"

	"github.com/gopawl/pawl"
)

// selected returns the row with the marker.
func (s *screen) selected() string {
	found := regexp.MustCompile(`(?m)^▸ (\S+)`).FindStringSubmatch(s.text())
	if found == nil {
		return ""
	}
	return found[1]
}

// manyJobs returns a queue with that many jobs in one state.
func manyJobs(n int, state pawl.State) *fake {
	f := sampleQueue()
	f.jobs = nil
	for i := range n {
		e := &pawl.Envelope{ID: testID(i), Queue: "default", Kind: fmt.Sprintf("kind%d", i%10), State: state, LeasedSince: noon}
		if state == pawl.Dead {
			e.Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: noon}
		}
		f.jobs = append(f.jobs, e)
	}
	return f
}

// Keys move between panes and rows, and stop at both ends.
func TestMoving(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 20)
	steps := []struct{ key, selected string }{
		{"k", "default"}, {"j", "email"}, {"down", "reports"}, {"j", "reports"}, {"up", "email"}, {"home", "default"}, {"end", "reports"}, {"g", "default"},
		{"tab", "…00000004"}, {"j", "…00000005"}, {"j", "…00000005"}, {"k", "…00000004"}, {"k", "…00000004"},
		{"tab", "…00000006"}, {"tab", "…00000009"}, {"G", "…0000000c"}, {"tab", "default"},
		{"shift+tab", "…0000000c"}, {"3", "…00000006"}, {"1", "default"}, {"x", "default"}, {"esc", "default"},
	}
	for i, step := range steps {
		s.press(step.key)
		require.Equal(t, step.selected, s.selected(), "step %d, %s", i, step.key)
	}
	for _, key := range []string{"q", "ctrl+c"} {
		s := newScreen(t, sampleQueue(), 100, 20)
		require.True(t, s.press(key).quit, key)
	}
	s.press("?", "ctrl+c")
	require.True(t, s.quit, "ctrl-C quits everywhere")
}

// Only visible rows are ever read, and moving past the end of a page shows the next one; all
// jobs appear once on the way down, and again on the way up.
func TestPaging(t *testing.T) {
	s := newScreen(t, manyJobs(100, pawl.Dead), 100, 20)
	s.queue.listed = 0
	s.press("4")
	rows := s.m.rows()
	require.Equal(t, 15, rows)
	require.Equal(t, rows, s.queue.listed)
	var down []string
	for range 99 {
		down = append(down, s.selected())
		s.press("j")
	}
	down = append(down, s.selected())
	for i, id := range down {
		require.Equal(t, shortened(testID(i)), id)
	}
	s.has("page 7, the last").press("j")
	require.Equal(t, down[99], s.selected())
	for i := range 99 {
		s.press("k")
		require.Equal(t, down[98-i], s.selected())
	}
	s.has("page 1, more below")
	s.press("pgdown", "pgdown").has("page 2")
	s.press("home").has("page 1")
	require.Equal(t, down[0], s.selected())
}

// The selected job stays selected while others come and go; if it vanishes, its neighbor is
// selected; if the page vanishes, the previous page is shown.
func TestSelectionFollowsTheJob(t *testing.T) {
	s := newScreen(t, manyJobs(20, pawl.Leased), 100, 20)
	s.press("2", "j", "j", "j")
	require.Equal(t, "…00000003", s.selected())
	s.queue.jobs = s.queue.jobs[2:]
	s.tick()
	require.Equal(t, "…00000003", s.selected())
	s.queue.jobs = s.queue.jobs[2:]
	s.tick()
	require.Equal(t, "…00000005", s.selected(), "the row is kept where the job is gone")
	s.press("G", "j").has("page 2")
	s.queue.jobs = s.queue.jobs[:3]
	s.tick().has("…00000004")
	s.queue.jobs = nil
	s.tick().has("No job runs.").press("j", "k", "enter", "C")
	require.Empty(t, s.queue.changes())
}

// A filter selects in every pane by exact names and by words; Esc removes it.
func TestFilter(t *testing.T) {
	cases := []struct {
		rule  string
		pane  string
		typed string
		has   []string
		lacks []string
	}{
		{"words find queues", "1", "em", []string{"email", "/em"}, []string{"default", "reports"}},
		{"a queue is exact", "3", "queue=email", []string{"…00000007", "…00000008"}, []string{"default"}},
		{"and no part of one", "3", "queue=emai", []string{"Nothing matches the filter"}, []string{"…0000"}},
		{"a kind is exact", "3", "kind=mail.digest", []string{"…00000007"}, []string{"…00000006"}},
		{"words are looked for in errors", "4", "NO SUCH mx2", []string{"…0000000b"}, []string{"…0000000a"}},
		{"in IDs", "3", "000000000006", []string{"…00000006"}, []string{"…00000007"}},
		{"in states and reasons", "4", "exhausted", []string{"…0000000b"}, nil},
		{"both are combined", "3", "queue=default thumb", []string{"…00000001"}, []string{"email"}},
		{"quotes keep spaces together", "4", `"such user"`, []string{"…0000000b"}, nil},
		{"and the order of words", "4", `"user such"`, []string{"Nothing matches the filter"}, nil},
		{"nothing is no filter", "4", "  ", []string{"…0000000b"}, []string{"4]  /"}},
		{"quotes that do not end", "4", `"such`, []string{"must end with", "…0000000b"}, nil},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			s := newScreen(t, sampleQueue(), 100, 24)
			s.press(c.pane, "/").write(c.typed).press("enter").has(c.has...).lacks(c.lacks...)
			s.press("esc", "esc", "1").has("default", "email", "reports")
		})
	}
	// The filter can be edited, scrolls if it is long, is abandoned by Esc, and starts with the
	// current text.
	s := newScreen(t, sampleQueue(), 40, 10)
	s.press("/").write("queue=emial").press("backspace", "backspace", "backspace").write("ail")
	s.has("/queue=email").press("ctrl+u").has("\n/").write("one two").press("ctrl+w").has("/one").lacks("two")
	s.press("ctrl+u").write("queue=email").press("enter").lacks("default").press("/").has("/queue=email").press("esc").lacks("default")
	s.press("/").write(" 0123456789012345678901234567890123456789").has("234567890123456789012345678901234567")
	s.send(tea.PasteMsg{Content: "\x1b]0;evil\a"})
	s.has(`\x1b]0;evil\x07`)
	require.False(t, s.press("q").quit, "q is a letter here")
}

// A reading searches a bounded number of jobs for words, and the next readings continue the
// search.
func TestFilterIsBounded(t *testing.T) {
	f := manyJobs(3*scanned, pawl.Dead)
	f.jobs[2*scanned+3].Kind = "needle"
	s := newScreen(t, f, 100, 20)
	s.press("4")
	f.listed = 0
	s.press("/").write("needle").press("enter")
	require.Equal(t, 3*scanned, f.listed)
	require.Equal(t, "…000003eb", s.selected())
	s.has("1 found among 1500, r searches again")
	f.listed = 0
	s.tick().tick().has("needle")
	require.Zero(t, f.listed, "a search of several readings is not made again by itself")
	s.press("r").has("needle")
	require.Equal(t, 3*scanned, f.listed)
	s.press("/").press("ctrl+u").write("nowhere").press("enter").has("Nothing matches the filter")
	// Short pages are not the end, and the number of calls of a reading is bounded too.
	f.pageMax = 1
	s.press("esc", "4")
	f.calls = nil
	s.m.lists[deadPane] = list{}
	require.LessOrEqual(t, len(s.readOnce().pages[deadPane].rows), calls)
	require.LessOrEqual(t, len(f.calls), 1+calls)
	s.press("r")
	require.Len(t, s.m.lists[deadPane].rows, s.m.rows(), "the page is full")
	s.has("page 1, more below")
}

// readOnce returns the result of one reading, which the screen does not receive.
func (s *screen) readOnce() reading { return s.m.read()().(reading) }

// A queue leads to its jobs, a job to its detail, and Esc back to the row.
func TestDetail(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 40)
	s.press("j", "enter").has("[2 running 2]", "/queue=email", "…00000005").lacks("…00000004")
	s.press("enter").has("id          "+testID(5).String(), `"to": "ada@example.org"`, "attempt     3 of 4", "leased, cancelled", "connection refused")
	s.queue.jobs[4].Attempts = 3
	s.tick().has("attempt     4 of 4")
	s.queue.jobs = s.queue.jobs[:4]
	s.tick().has("the job is done and gone", "attempt     4 of 4").press("C").lacks("y/n")
	s.press("esc").has("Nothing matches the filter").press("esc").has("…00000004")
	s = newScreen(t, sampleQueue(), 40, 10)
	s.press("4", "enter").has("kind ").press("G").has("said mx0").lacks("kind ").press("j", "k", "g").has("kind ")
}

// A job's large payload is not read every second.
func TestLargePayload(t *testing.T) {
	s := newScreen(t, sampleQueue(), 100, 40)
	s.queue.jobs[8].Payload = make([]byte, largePayload+1)
	s.press("4", "enter").has("64.0 KiB").press("G").has("truncated")
	s.queue.calls = nil
	s.tick().tick()
	require.Empty(t, s.queue.calls)
	s.press("r")
	require.Equal(t, []string{"stats", "job"}, s.queue.calls)
}

// Whatever the file contains, the screen has only characters and colors; see text.
func TestNothingReachesTheTerminalRaw(t *testing.T) {
	hostile := "a\x1b[2J\x1b]0;x\a\r\n\t\u202eb\x9b31m\xff\u200b\U000e0041データ\u0301" + string(rune(0x85))
	f := sampleQueue()
	f.path = hostile
	f.process.Name = hostile
	f.paused[hostile] = true
	for i, e := range f.jobs {
		e.Queue, e.Origin, e.Kind, e.UniqueKey, e.IdempotencyKey, e.KeyID = hostile, hostile+"o", hostile, hostile, hostile, hostile
		e.Headers = map[string]string{hostile: hostile}
		e.Payload = append([]byte{0xd9, byte(len(hostile))}, hostile...)
		e.History = []pawl.Failure{{Attempt: 1, At: noon, Error: hostile}}
		e.Failures = 1
		if e.Death != nil {
			e.Death.Reason = pawl.Reason(hostile)
		}
		if i%2 == 0 {
			f.damaged = map[pawl.ID]error{e.ID: errors.New(hostile)}
		}
	}
	for _, size := range [][2]int{{100, 30}, {40, 10}, {7, 3}, {1, 1}} {
		s := newScreen(t, f, size[0], size[1])
		for _, keys := range [][]string{{"1"}, {"P"}, {"n", "2"}, {"enter"}, {"G"}, {"esc", "3"}, {"C"}, {"n", "4"}, {"D"}, {"y"}, {"enter"}, {"esc", "esc", "1", "enter"}, {"/"}} {
			s.press(keys...)
			s.text()
		}
		s.press("esc", "esc")
		f.err = errors.New(hostile)
		s.tick().text()
		f.err = nil
	}
}

// An unreadable job is shown with the reason, in every pane and with any filter, and can be
// deleted.
func TestDamagedJob(t *testing.T) {
	f := sampleQueue()
	f.damaged = map[pawl.ID]error{testID(9): fmt.Errorf("record: %w", pawl.ErrCorrupt)}
	s := newScreen(t, f, 100, 20)
	s.press("4").has("damaged", "record: ").press("/").write("nothing").press("enter").has("damaged")
	s.press("enter").has("error: record", "live").press("esc", "D", "y")
	require.Equal(t, []string{"delete …00000009"}, f.changes())
}

// The screen fits any size of the terminal, and shows as many rows as there is room for.
func TestResize(t *testing.T) {
	s := newScreen(t, manyJobs(100, pawl.Dead), 100, 20)
	s.press("4", "j")
	for _, size := range [][2]int{{200, 60}, {40, 10}, {20, 5}, {3, 2}, {1, 1}, {0, 0}, {80, 24}} {
		s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if size[1] > 0 {
			s.text()
		}
		if rows := size[1] - 5; rows > 0 {
			require.Len(t, s.m.lists[deadPane].rows, min(rows, 100))
		}
		if size[0] >= 40 {
			require.Equal(t, "…00000001", s.m.shownID())
		}
	}
	require.Equal(t, time.Second, s.waits[0])
}

// shownID returns the selected job.
func (m *model) shownID() string {
	job, _ := m.lists[m.pane].current()
	return shortened(job.Job.ID)
}
