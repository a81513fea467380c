//go:build unix

package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/cmd/jobctl/internal/shoot/tmux"
	"github.com/gopawl/pawl/internal/need"
)

// The tests in this file run top in a real terminal. The program there is the test binary, with
// the mode of childMain in a variable.
const (
	modeVariable = "PAWL_TOP_MODE"
	fileVariable = "PAWL_TOP_FILE"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		childMain(mode, os.Getenv(fileVariable))
		return
	}
	os.Exit(m.Run())
}

// childMain shows the file, from the process that has it, or from the app in this process.
func childMain(mode, path string) {
	// A terminal that goes away sends more than one signal, and this process must close its file
	// after the first.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	defer func() { _ = os.WriteFile(path+".ended", nil, 0o600) }() // when the file is closed
	opts := Options{NoColor: os.Getenv("NO_COLOR") != ""}
	open := func(ctx context.Context, notice func(string)) (admin.Admin, error) {
		return admin.Open(ctx, offline.New(path, &offline.Options{Notice: notice}), nil)
	}
	switch mode {
	case "app":
		q, err := bolt.Open(path, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer q.Close()
		server, err := admin.Serve(q, &admin.Options{Name: "test-app"})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer server.Close()
	case "panic":
		opts.Refresh = 10 * time.Millisecond
		opened := 0
		open = func(context.Context, func(string)) (admin.Admin, error) {
			if opened++; opened == 2 {
				panic("a mistake")
			}
			return admin.Offline(offline.New(path, nil)), nil
		}
	}
	_ = os.WriteFile(path+".pid", fmt.Appendf(nil, "%d", os.Getpid()), 0o600)
	fmt.Println("top ended:", Run(context.Background(), Source{Open: open}, opts))
}

// terminal is a terminal for a test.
type terminal struct {
	t *testing.T
	*tmux.Terminal
	path string // of the file
}

// startTop creates a file with jobs and runs top on it, in a terminal with earlier output.
func startTop(t *testing.T, mode string, env ...string) *terminal {
	path := filepath.Join(t.TempDir(), "jobs.db")
	makeFile(t, path)
	self, err := os.Executable()
	require.NoError(t, err)
	env = append(env, modeVariable+"="+mode, fileVariable+"="+path,
		// When top stops, the library closes the terminal's input during a read. The race
		// detector must not report that on the screen.
		"GORACE=exitcode=0 log_path="+filepath.Join(filepath.Dir(path), "races"))
	raw, err := tmux.Start(90, 60, env...) // a panic says more than twenty lines
	if errors.Is(err, tmux.ErrMissing) {
		need.Server(t, err.Error())
	}
	require.NoError(t, err)
	term := &terminal{t, raw, path}
	t.Cleanup(func() {
		_ = raw.Close() // it has ended already where the test ended it
		term.gone()
	})
	require.NoError(t, raw.Type("echo 'stood' 'here'; '"+self+"'\n"))
	return term
}

func makeFile(t *testing.T, path string) {
	ctx := context.Background()
	q, err := bolt.Open(path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	mail := pawl.Define[string]("mail.send")
	for i := range 3 {
		_, err := mail.Enqueue(ctx, q, fmt.Sprintf("user%d@example.org", i), pawl.OnQueue("email"), pawl.Delay(time.Hour))
		require.NoError(t, err)
	}
	_, err = mail.Enqueue(ctx, q, "データ", pawl.OnQueue("default"))
	require.NoError(t, err)
}

// wait waits until all the texts are on the screen, and those that begin with ! are not.
func (term *terminal) wait(texts ...string) {
	term.t.Helper()
	term.until(strings.Join(texts, ", "), func(screen string) bool {
		for _, text := range texts {
			if absent, negated := strings.CutPrefix(text, "!"); strings.Contains(screen, absent) == negated {
				return false
			}
		}
		return true
	})
}

func (term *terminal) until(what string, seen func(screen string) bool) {
	term.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := term.Wait(ctx, what, seen)
	require.NoError(term.t, err)
}

// prompt waits for the shell's prompt. Text typed earlier may be lost.
func (term *terminal) prompt() {
	term.t.Helper()
	term.until("a prompt", func(screen string) bool {
		screen = strings.TrimRight(screen, "\n")
		return screen == "$" || strings.HasSuffix(screen, "\n$")
	})
}

func (term *terminal) press(keys ...string) *terminal {
	term.t.Helper()
	require.NoError(term.t, term.Press(keys...))
	return term
}

// ended waits until top is gone and the terminal is restored: its screen and its modes.
func (term *terminal) ended(says string) {
	term.t.Helper()
	term.wait("stood here", "top ended: "+says, "!QUEUE  ")
	term.restored()
}

// gone waits until the process of top has ended, so that nothing more writes to the folder of
// the test. The test fails if the end of its terminal does not end the process.
func (term *terminal) gone() {
	require.Eventually(term.t, func() bool {
		_, err := os.Stat(term.path + ".ended")
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// restored requires the modes of a terminal for typing, and types.
func (term *terminal) restored() {
	term.t.Helper()
	term.prompt()
	require.NoError(term.t, term.Type("stty -a | tr ' ;' '\\n\\n' | grep -xE -e '-?(echo|icanon|isig|opost)' | paste -sd ' '\n"))
	term.wait("isig icanon echo", "opost")
	term.prompt()
	require.NoError(term.t, term.Type("echo t''yped\n"))
	term.wait("typed") // not what was typed, but what came of it
}

// A complete session with the queue of a live app.
func TestTerminal(t *testing.T) {
	term := startTop(t, "app")
	term.wait("live", "test-app (pid", "▸ email", "default", "running", "!stood here")
	term.wait("── running 0 – key 2 shows all ──", "No job runs.", "── dead 0 – key 4 shows all ──", "No dead jobs.")
	term.press("j").wait("▸ default")
	term.press("Up").wait("▸ email")
	term.press("Tab", "Tab").wait("[3 waiting 4]", "mail.send", "delayed", "ready")
	term.press("Enter").wait("kind        mail.send", `"user0@example.org"`, "no failed attempt")
	term.press("Escape").wait("[3 waiting 4]", "!no failed attempt")
	require.NoError(t, term.Type("/queue=default"))
	term.wait("\n/queue=default")
	term.press("Enter").wait("waiting 4]", "▸ …", "default", "!email") // a row: Enter opens nothing before the list was read
	term.press("Enter").wait("データ")
	term.press("Escape").wait("[3 waiting 4]", "/queue=default", "!データ")
	term.press("Escape").wait("[3 waiting 4]", "email", "!/queue=default")
	term.press("1").wait("▸ email")
	term.press("P").wait("Pause queue email?", "y/n")
	term.press("n").wait("nothing was changed", "!PAUSED")
	term.press("P").wait("Pause queue email?")
	term.press("y").wait("queue email is paused", "PAUSED")
	term.press("3", "N").wait("Run job", "now?")
	term.press("y").wait("is ready")
	require.NoError(t, term.Resize(40, 10))
	term.wait(" queues  running 0 [waiting 4] dead 0", "!1 queues")
	term.press("1").wait("[queues]", "▸ email", "!shows all")
	term.press("3").wait("[waiting 4]")
	require.NoError(t, term.Resize(120, 30))
	term.wait("[3 waiting 4]")
	term.press("?").wait("Each of these asks first", "waiting, dead,", "retry a dead job; resume a run")
	term.press("Escape").wait("!Each of these")
	term.press("q")
	term.ended("<nil>")

	r, err := bolt.OpenReader(term.path)
	require.NoError(t, err)
	defer r.Close()
	stats, err := r.Stats(context.Background())
	require.NoError(t, err)
	require.Equal(t, "email", stats.Queues[0].Name)
	require.True(t, stats.Queues[0].Paused, "what the screen said is in the file")
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 2}, stats.Queues[0].Counts)
}

// The file of a stopped app is shown, changed, and released: another process can open it while
// the screen is shown.
func TestTerminalOfStoppedApp(t *testing.T) {
	term := startTop(t, "open")
	term.wait("STOPPED – snapshot of", "▸ email", "stopped")
	q, err := bolt.Open(term.path, &bolt.Options{LockTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, q.Pause(context.Background(), "default"))
	require.NoError(t, q.Close())
	term.wait("!PAUSED")
	term.press("r").wait("PAUSED")
	term.press("G", "P").wait("Resume queue default?")
	term.press("y").wait("queue default is resumed", "!PAUSED")
	term.press("C-c")
	term.ended("<nil>")
}

// An app stops and starts while the screen is shown: the screen follows it, and the app never
// waits for its file.
func TestTerminalFollowsTheApp(t *testing.T) {
	ctx := context.Background()
	term := startTop(t, "open")
	term.wait("STOPPED", "▸ email")
	q, err := bolt.Open(term.path, &bolt.Options{LockTimeout: time.Minute})
	require.NoError(t, err)
	server, err := admin.Serve(q, &admin.Options{Name: "other-app"})
	require.NoError(t, err)
	term.wait("live", fmt.Sprintf("other-app (pid %d)", os.Getpid()), "!PAUSED")
	require.NoError(t, q.Pause(ctx, "default"))
	term.wait("live", "PAUSED")
	require.NoError(t, q.Resume(ctx, "default"))
	require.NoError(t, server.Close())
	require.NoError(t, q.Close())
	term.wait("STOPPED", "!PAUSED")
	term.press("q")
	term.ended("<nil>")
}

// However top ends, it restores the terminal.
func TestTerminalIsRestored(t *testing.T) {
	for _, signal := range []string{"TERM", "HUP", "INT"} {
		t.Run(signal, func(t *testing.T) {
			term := startTop(t, "open")
			term.wait("▸ email")
			pid, err := os.ReadFile(term.path + ".pid")
			require.NoError(t, err)
			kill(t, string(pid), signal)
			term.ended("show queue: ")
		})
	}
	t.Run("panic", func(t *testing.T) {
		term := startTop(t, "panic")
		term.wait("top ended: show queue: program was killed: program experienced a panic")
		term.restored()
	})
	t.Run("suspend", func(t *testing.T) {
		term := startTop(t, "open")
		term.wait("▸ email")
		term.press("C-z").wait("stood here", "!▸ email")
		term.prompt()
		require.NoError(t, term.Type("fg\n"))
		term.wait("▸ email", "!stood here")
		term.press("q")
		term.ended("<nil>")
	})
	// Closing a terminal also ends top, and releases the file.
	t.Run("closed", func(t *testing.T) {
		term := startTop(t, "app")
		term.wait("▸ email")
		require.NoError(t, term.Close())
		q, err := bolt.Open(term.path, &bolt.Options{LockTimeout: time.Minute})
		require.NoError(t, err)
		require.NoError(t, q.Close())
	})
}

// kill sends a signal by name.
func kill(t *testing.T, pid, signal string) {
	out, err := exec.Command("kill", "-"+signal, pid).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// NO_COLOR with any value leaves only font weights; TERM=dumb is not a terminal.
func TestTerminalColors(t *testing.T) {
	color := regexp.MustCompile("\x1b\\[[0-9;]*(3|4|9|10)[0-7][;m]")
	term := startTop(t, "app")
	term.wait("▸ email")
	screen, err := term.Colored()
	require.NoError(t, err)
	require.Regexp(t, color, screen)

	term = startTop(t, "app", "NO_COLOR=please")
	term.wait("▸ email")
	screen, err = term.Colored()
	require.NoError(t, err)
	require.NotRegexp(t, color, screen)
	term.press("q")
	term.ended("<nil>")

	startTop(t, "app", "TERM=dumb").wait("top ended: " + ErrNoTerminal.Error())
}

// Without a terminal nothing is opened and nothing is written.
func TestNoTerminal(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	open := func(context.Context, func(string)) (admin.Admin, error) {
		t.Error("opened")
		return nil, nil
	}
	require.ErrorIs(t, Run(context.Background(), Source{open}, Options{Input: in, Output: out}), ErrNoTerminal)
}
