package top

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// screen is a model with a user: keys and ticks go in, and everything that they cause is done
// before the next one.
type screen struct {
	t     *testing.T
	m     *model
	queue *fake
	now   time.Time
	quit  bool
	waits []time.Duration // that were asked for
}

func newScreen(t *testing.T, queue *fake, width, height int) *screen {
	s := &screen{t: t, queue: queue, now: noon}
	opts := Options{UTC: true, Now: func() time.Time { return s.now }}.withDefaults()
	s.m = newModel(context.Background(), &link{open: queue.open, timeout: time.Minute}, opts)
	s.m.after = func(d time.Duration, _ tea.Msg) tea.Cmd {
		if d != settled {
			s.waits = append(s.waits, d)
		}
		return nil
	}
	s.do(s.m.Init())
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

func (s *screen) send(msg tea.Msg) {
	_, cmd := s.m.Update(msg)
	s.do(cmd)
}

// do executes a command and everything that follows from it.
func (s *screen) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			s.do(cmd)
		}
	case tea.QuitMsg:
		s.quit = true
	case nil:
	default:
		s.send(msg)
	}
}

// press types keys, each a word: "j", "enter", "ctrl+c".
func (s *screen) press(keys ...string) *screen {
	named := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab},
		"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
		"backspace": {Code: tea.KeyBackspace}, "space": {Code: tea.KeySpace, Text: " "},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "ctrl+w": {Code: 'w', Mod: tea.ModCtrl},
	}
	for _, name := range keys {
		key, known := named[name]
		if !known {
			require.Len(s.t, []rune(name), 1, "a key of the test")
			key = tea.Key{Code: []rune(name)[0], Text: name}
		}
		require.Equal(s.t, name, tea.KeyPressMsg(key).String())
		s.send(tea.KeyPressMsg(key))
	}
	return s
}

func (s *screen) write(text string) *screen {
	for _, r := range text {
		if r == ' ' {
			s.press("space")
		} else {
			s.press(string(r))
		}
	}
	return s
}

// tick lets a second pass.
func (s *screen) tick() *screen {
	s.now = s.now.Add(time.Second)
	s.send(tick{})
	return s
}

// text returns the screen without colors, after checking what must always be true.
func (s *screen) text() string {
	content := s.m.View().Content
	lines := strings.Split(content, "\n")
	require.Len(s.t, lines, s.m.height)
	for _, line := range lines {
		require.LessOrEqual(s.t, ansi.StringWidth(line), s.m.width, "%q", line)
		requireOnlyColors(s.t, line)
	}
	plain := strings.Split(ansi.Strip(content), "\n")
	for i := range plain {
		plain[i] = strings.TrimRight(plain[i], " ")
	}
	return strings.Join(plain, "\n") + "\n"
}

// requireOnlyColors fails for every byte that could affect a terminal in another way.
func requireOnlyColors(t *testing.T, line string) {
	t.Helper()
	for rest := line; rest != ""; {
		if sequence, found := strings.CutPrefix(rest, "\x1b["); found {
			end := strings.IndexFunc(sequence, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
			require.True(t, end >= 0 && sequence[end] == 'm', "%q", line)
			rest = sequence[end+1:]
			continue
		}
		r := []rune(rest)[0]
		require.False(t, !plain.Harmless(r), "%q has %U", line, r)
		rest = rest[len(string(r)):]
	}
}

func (s *screen) has(texts ...string) *screen {
	s.t.Helper()
	for _, text := range texts {
		require.Contains(s.t, s.text(), text)
	}
	return s
}

func (s *screen) lacks(texts ...string) *screen {
	s.t.Helper()
	for _, text := range texts {
		require.NotContains(s.t, s.text(), text)
	}
	return s
}

var update = flag.Bool("update", false, "write the golden screens anew")

// advance returns the count after that many more attempts.
func advance(d admin.Done, succeeded, failed int) admin.Done {
	return admin.Done{Succeeded: d.Succeeded + int64(succeeded), Failed: d.Failed + int64(failed)}
}

// Every screen matches its stored file, on a wide terminal, an ordinary one and the smallest.
func TestScreens(t *testing.T) {
	cases := []struct {
		name string
		keys []string
		stop bool
	}{
		{name: "queues"},
		{name: "stopped", stop: true},
		{name: "running", keys: []string{"tab", "j"}},
		{name: "waiting", keys: []string{"3"}},
		{name: "dead", keys: []string{"4", "down", "down"}},
		{name: "detail", keys: []string{"4", "enter"}},
		{name: "confirm", keys: []string{"4", "j", "R"}},
		{name: "typing", keys: []string{"/", "q", "u", "e", "u", "e", "=", "e", "m"}},
		{name: "filtered", keys: []string{"j", "enter", "tab"}},
		{name: "help", keys: []string{"?"}},
	}
	sizes := []struct {
		name          string
		width, height int
	}{{"wide", 130, 20}, {"usual", 80, 24}, {"small", 40, 10}}
	for _, c := range cases {
		for _, size := range sizes {
			t.Run(c.name+"/"+size.name, func(t *testing.T) {
				queue := sampleQueue()
				if c.stop {
					queue.process, queue.done = nil, nil
				}
				s := newScreen(t, queue, size.width, size.height)
				for i := range 8 {
					if !c.stop {
						queue.done["email"] = advance(queue.done["email"], 2*i, i/3)
						queue.done["default"] = advance(queue.done["default"], 40-3*i, 0)
					}
					s.tick()
				}
				s.now = noon // ages are those of the fixture
				s.send(tick{})
				s.press(c.keys...)
				path := filepath.Join("testdata", c.name+"-"+size.name+".txt")
				if *update {
					require.NoError(t, os.WriteFile(path, []byte(s.text()), 0o644))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err, "make it by: go test ./internal/top -update")
				require.Equal(t, string(want), s.text())
			})
		}
	}
}

// Rule: the caller decides about colors, whatever NO_COLOR is.
func TestEnvironmentOfTheRenderer(t *testing.T) {
	t.Setenv("NO_COLOR", "please")
	for _, noColor := range []bool{false, true} {
		var got []string
		for _, one := range environment(noColor) {
			if strings.HasPrefix(one, "NO_COLOR=") {
				got = append(got, one)
			}
		}
		require.Equal(t, noColor, len(got) == 1, "%q", got)
		require.NotContains(t, got, "NO_COLOR=please")
	}
}

// Rule: the clients of a queue on a server have no process ID.
func TestHeaderOfAServer(t *testing.T) {
	m := &model{width: 120, at: time.Unix(0, 0), live: true}
	m.stats.Process = &admin.Process{Name: "3 clients"}
	require.Contains(t, m.header(), "3 clients")
	require.NotContains(t, m.header(), "pid")
}
