package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/usage"
)

// These tests show that the families can fail.

// Children that break a promise at their second file.
func init() {
	for name, fault := range map[string]func(){
		"test-panics": func() {
			go panic("planted")
			select {}
		},
		"test-exits": func() { os.Exit(0) },
		"test-tells": func() { wrong(errors.New("planted")) },
	} {
		harness.Role(name, func(args harness.Args) error {
			from, err := strconv.Atoi(args[2])
			if err != nil {
				return err
			}
			for n := from; n < 4; n++ {
				harness.Emit("file", n, strconv.Quote("a mutation"))
				if err := os.WriteFile(filepath.Join(args[0], "case.db"), []byte{byte(n)}, 0o600); err != nil {
					return err
				}
				if n == 1 {
					fault()
				}
			}
			harness.Emit("done")
			return nil
		})
	}
}

// Rule: if a child dies at a file, in whatever way, only that file counts as a
// violation, and is kept; the files after it are still tried.
func TestFaultOfAChildIsSeen(t *testing.T) {
	for role, says := range map[string]string{
		"test-panics": "panic: planted", "test-exits": "took the process down", "test-tells": "planted",
	} {
		t.Run(role, func(t *testing.T) {
			f := &harness.Family{Parallel: 1, Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
				return func(t *harness.Try) error { return batch(t, role) }, nil
			}}
			p := plan(4)
			p.Once = true
			result := f.Run(t.Context(), p)
			require.Equal(t, 1, result.Violations)
			v := result.First[0]
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(filepath.Dir(v.Dir))) })
			require.ErrorContains(t, v.Err, "file 1 (file-1.db; a mutation)")
			require.ErrorContains(t, v.Err, says)
			kept, err := os.ReadFile(filepath.Join(v.Dir, "file-1.db"))
			require.NoError(t, err)
			require.Equal(t, []byte{1}, kept)
			require.GreaterOrEqual(t, result.Tried, 3)
		})
	}
}

var sink []byte

// Rule: a step that panics, takes too long or too much memory is a violation.
func TestFaultOfAStepIsSeen(t *testing.T) {
	w := newWatch(nil)
	require.NoError(t, w.step("good", func() error { return nil }))
	require.ErrorContains(t, w.step("panics", func() error { panic("planted") }), "panic: planted")
	require.ErrorContains(t, w.step("fails", func() error { return errors.New("planted") }), "planted")
	w.bytes = 1 << 20
	require.ErrorContains(t, w.step("allocates", func() error { sink = make([]byte, 2<<20); return nil }), "allocated 2 MiB")
	w.cpu = time.Nanosecond
	require.ErrorContains(t, w.step("computes", func() error {
		for before := usage.CPU(); usage.CPU() == before; {
			sink = make([]byte, 100)
		}
		return nil
	}), "it took")
}

// Rule: a step without an end is reported, with the stacks of all goroutines.
func TestHangIsSeen(t *testing.T) {
	reported := make(chan error, 1)
	w := newWatch(func(err error) { reported <- err })
	w.wall = 0
	w.start()
	require.NoError(t, w.step("hangs", func() error {
		require.ErrorContains(t, <-reported, "hangs: it has not ended")
		return nil
	}))
}

// Rule: an error is one of those that callers can match.
func TestErrorWithoutATypeIsSeen(t *testing.T) {
	require.NoError(t, refused(nil))
	require.NoError(t, refused(bolt.ErrNotQueue))
	require.ErrorContains(t, refused(os.ErrClosed), "no caller can match")
	require.ErrorContains(t, refused(pawl.ErrNotFound), "no caller can match")
	require.NoError(t, answered(pawl.ErrNotFound))
	require.ErrorContains(t, answered(errors.New("key too large")), "no caller can match")
}

// Rule: a job that differs from what was stored is a violation, unless a checksum was
// forged.
func TestWrongDataIsSeen(t *testing.T) {
	all, _ := bases(t)
	b := all[len(all)-1]
	trial := &trial{hostile: &hostile{base: b}}
	var sound *pawl.Envelope
	for _, e := range b.jobs {
		if len(e.History) > 0 && len(e.Payload) > 0 {
			sound = e
		}
	}
	require.NoError(t, trial.asStored(sound))
	require.NoError(t, trial.asGiven(sound))
	for name, change := range map[string]func(e *pawl.Envelope){
		"payload":  func(e *pawl.Envelope) { e.Payload = append([]byte{e.Payload[0] ^ 1}, e.Payload[1:]...) },
		"kind":     func(e *pawl.Envelope) { e.Kind += "x" },
		"attempts": func(e *pawl.Envelope) { e.Attempts++ },
		"history":  func(e *pawl.Envelope) { e.History = e.History[1:] },
		"ID":       func(e *pawl.Envelope) { e.ID = pawl.NewID(began) },
		"state":    func(e *pawl.Envelope) { e.State = "another" },
	} {
		wrong := *sound
		change(&wrong)
		require.ErrorContains(t, trial.asStored(&wrong), "silently wrong", name)
		trial.forged = true
		require.NoError(t, trial.asStored(&wrong), name)
		trial.forged = false
	}
	wrong := *sound
	wrong.Kind = "other"
	require.ErrorContains(t, trial.asGiven(&wrong), "silently wrong")
}

// Rule: a reader that writes is a violation.
func TestChangedFileIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.db")
	h := &hostile{file: []byte("content"), size: 20}
	require.NoError(t, h.write(path))
	trial := &trial{hostile: h}
	require.NoError(t, trial.untouched(path))
	require.NoError(t, os.Truncate(path, 21))
	require.ErrorContains(t, trial.untouched(path), "changed")
	require.NoError(t, os.WriteFile(path, []byte("Content"), 0o600))
	require.NoError(t, os.Truncate(path, 20))
	require.ErrorContains(t, trial.untouched(path), "changed")
}

// Rule: what jobctl must not do is a violation.
func TestFaultOfJobctlIsSeen(t *testing.T) {
	sound := new(layout)
	c := &ctl{sound: map[*layout]map[string]bool{sound: {"{}\n": true}}}
	h := &hostile{sources: []*layout{sound}}
	list := line{[]string{"--db", "case.db", "job", "list", "-o", "jsonl"}, true}
	verify := line{[]string{"--db", "case.db", "wf", "verify"}, true}
	retry := line{[]string{"--db", "case.db", "dead", "retry"}, false}
	for _, test := range []struct {
		rule string
		line
		answer
		wrong string // "" when it is right
	}{
		{"done", list, answer{Stdout: []byte("{}\n")}, ""},
		{"damaged, and says so", list, answer{Code: 5, Stdout: []byte("{}\n"), Stderr: []byte("error: it is\n")}, ""},
		{"in the way of a retry", retry, answer{Code: 6, Stderr: []byte("error: alive\n")}, ""},
		{"but not of a list", list, answer{Code: 6, Stderr: []byte("error: alive\n")}, "exit code 6"},
		{"no app to compare with", verify, answer{Code: 4, Stderr: []byte("error: no app is running\n")}, ""},
		{"nothing is in the way of it", verify, answer{Code: 6, Stderr: []byte("x")}, "exit code 6"},
		{"panics", list, answer{Panic: "nil"}, "panic: nil"},
		{"the line is wrong", list, answer{Code: 2, Stderr: []byte("x")}, "exit code 2"},
		{"locked", list, answer{Code: 4, Stderr: []byte("x")}, "exit code 4"},
		{"killed by a signal", list, answer{Code: -1}, "exit code -1"},
		{"silent", list, answer{Code: 5}, "without a message"},
		{"slow", list, answer{Took: 3 * time.Second}, "it took 3s"},
		{"large", list, answer{Bytes: 300 << 20}, "allocated 300 MiB"},
		{"a control byte", list, answer{Stdout: []byte("{\"\x1b\"}\n")}, "U+001B"},
		{"in a message", list, answer{Code: 5, Stderr: []byte("\u202e")}, "U+202E"},
		{"no UTF-8", list, answer{Stdout: []byte("\xff")}, "invalid UTF-8"},
		{"another job", list, answer{Stdout: []byte("{\"id\":1}\n")}, "silently wrong"},
		{"no JSON", list, answer{Stdout: []byte("{\n")}, "invalid JSON"},
	} {
		err := c.judge(h, test.line, test.answer)
		if test.wrong == "" {
			require.NoError(t, err, test.rule)
			continue
		}
		require.ErrorContains(t, err, test.wrong, test.rule)
	}
}

// Rule: a summary of a damaged file may count fewer jobs if it reports the damage. It
// never counts more jobs, or other ones.
func TestSummaryOfADamagedFile(t *testing.T) {
	group := func(key string, count int, last string) []byte {
		return fmt.Appendf(nil, `{"key":%q,"count":%d,"first_died_at":"2030-01-01T00:00:00Z","last_died_at":%q}`+"\n", key, count, last)
	}
	const last, later = "2030-01-02T00:00:00Z", "2030-01-03T00:00:00Z"
	sound := &layout{}
	h := &hostile{sources: []*layout{sound}}
	c := &ctl{sound: map[*layout]map[string]bool{sound: {string(group("k", 4, last)): true}}}
	summary := line{[]string{"--db", "case.db", "dead", "summary", "-o", "jsonl"}, true}
	judge := func(code int, stdout []byte) error {
		return c.judge(h, summary, answer{Code: code, Stdout: stdout, Stderr: []byte("error: damaged\n")})
	}
	require.NoError(t, judge(0, group("k", 4, last)))
	require.NoError(t, judge(exitDamaged, group("k", 3, last)))
	for _, wrong := range [][]byte{group("k", 5, last), group("k", 3, later), group("other", 3, last), []byte("{\"id\":1}\n")} {
		require.ErrorContains(t, judge(exitDamaged, wrong), "silently wrong", string(wrong))
	}
	require.ErrorContains(t, judge(0, group("k", 3, last)), "silently wrong")
}

// Rule: every command of jobctl that takes a file is tried, new ones too.
func TestEveryCommandIsTried(t *testing.T) {
	all := lines([]string{"stats", "brand new", "version"}, pawl.ID{}, pawl.ID{})
	require.Len(t, all, 3)
	require.Equal(t, []string{"--db", "case.db", "brand", "new", pawl.ID{}.String()}, all[2].words)
}
