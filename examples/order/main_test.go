package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/examples/internal/places"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// asChild makes the test binary behave as the program itself, so that it can be killed. Its
// value says where: "before charge", "after charge", "at rest", or "never".
const (
	asChild = "ORDER_TEST_CHILD"
	later   = "ORDER_TEST_LATER" // how far its clock is ahead
)

func TestMain(m *testing.M) {
	if point := os.Getenv(asChild); point != "" {
		ahead, _ := time.ParseDuration(os.Getenv(later))
		p := &program{
			now:    func() time.Time { return time.Now().Add(ahead) },
			around: []workflow.Middleware{killed(point)},
		}
		if point == "at rest" {
			p.rests = killSelf
		}
		os.Exit(p.main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(places.Main(m))
}

// killed kills the process before or after the function of a step.
func killed(point string) workflow.Middleware {
	return func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			step := s.Step[strings.LastIndexByte(s.Step, '/')+1:]
			if point == "before "+step {
				killSelf()
			}
			v, err := next(ctx, s)
			if point == "after "+step {
				killSelf()
			}
			return v, err
		}
	}
}

// killSelf kills the process like kill -9.
func killSelf() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// desk is a shop with one test's orders.
type desk struct {
	*testing.T
	state string
	db    string        // "" for the default
	point string        // where the next process is to be killed
	ahead time.Duration // of the clock
}

func newDesk(t *testing.T, db, point string) *desk {
	return &desk{T: t, state: filepath.Join(memdir.New(t), "shop"), db: db, point: point}
}

// words are the words of a command line.
func (d *desk) words(args []string) []string {
	words := []string{"-state", d.state}
	if d.db != "" {
		words = append(words, "-db", d.db)
	}
	return append(words, args...)
}

// order runs the program in a process of its own. One that is killed is started again.
func (d *desk) order(args ...string) (stdout string) {
	d.Helper()
	stdout, killed := d.process(d.point, args...)
	if !killed {
		return stdout
	}
	d.point = "never"
	stdout, killed = d.process(d.point, "work")
	require.False(d, killed)
	return stdout
}

func (d *desk) process(point string, args ...string) (stdout string, killed bool) {
	d.Helper()
	cmd := exec.Command(os.Args[0], d.words(args)...)
	cmd.Env = append(os.Environ(), asChild+"="+point, later+"="+d.ahead.String())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() == -1 {
		return out.String(), true
	}
	require.NoError(d, err, "%s", errs.String())
	return out.String(), false
}

// effects are what was done in the world, and under how many keys.
func (d *desk) effects() (effects []string) {
	d.Helper()
	b, err := os.ReadFile(filepath.Join(d.state, "effects.log"))
	require.NoError(d, err)
	keys := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		require.Len(d, words, 3)
		require.False(d, keys[words[0]], "two effects have the key %s", words[0])
		keys[words[0]] = true
		effects = append(effects, words[1])
	}
	return effects
}

// story is what may happen to an order.
type story struct {
	name    string
	cents   string
	waits   bool     // for approval
	answer  string   // to it; "" for none in time
	effects []string // in the world, each of which takes place once
	end     string   // how it is listed then
	kills   []string // steps that it goes through besides
}

var stories = []story{
	{name: "approved", cents: "12900", waits: true, answer: "approve",
		effects: []string{"reserve", "charge", "ship"}, end: "done"},
	{name: "refused", cents: "12900", waits: true, answer: "refuse",
		effects: []string{"reserve", "charge", "refund", "release"}, end: "failed: the order was refused"},
	{name: "nobody answers", cents: "12900", waits: true,
		effects: []string{"reserve", "charge", "refund", "release"}, end: "failed: nobody approved it within 72h0m0s"},
	{name: "declined", cents: "200000", kills: []string{"charge"},
		effects: []string{"reserve", "release"}, end: `failed: step "charge": the bank declined`},
}

// play acts out a story.
func (s *story) play(d *desk) {
	d.Helper()
	listed := d.order("place", "1042", s.cents)
	if s.waits {
		require.Contains(d, listed, "1042       waiting for approval, until")
		require.Equal(d, []string{"reserve", "charge"}, d.effects())
		if s.answer == "" {
			d.ahead = approvalTimeout + time.Hour
			listed = d.order("work")
		} else {
			listed = d.order(s.answer, "1042")
		}
	}
	require.Contains(d, listed, "1042       "+s.end)
	require.Equal(d, s.effects, d.effects())
}

// Rule: an order is shipped, or undone in the reverse order; whenever it is killed: before
// each step, after the effect of each step and before its checkpoint, and while the order
// waits. It is as if it had not been killed, and each effect has taken place once.
func TestKilledAtEveryStep(t *testing.T) { places.Each(t, killedAtEveryStep) }

func killedAtEveryStep(t *testing.T, fresh func() (place string)) {
	for _, s := range stories {
		points := []string{"never", "at rest"}
		for _, step := range slices.Concat(s.effects, s.kills) {
			points = append(points, "before "+step, "after "+step)
		}
		for _, point := range points {
			t.Run(fmt.Sprintf("%s, killed %s", s.name, point), func(t *testing.T) {
				d := newDesk(t, fresh(), point)
				t.Parallel()
				s.play(d)
				require.Equal(t, "never", d.point, "it was not killed")
			})
		}
	}
}

// Rule: an order is taken once, with one price, and answered once.
func TestTwice(t *testing.T) { places.Each(t, twice) }

func twice(t *testing.T, fresh func() (place string)) {
	d := newDesk(t, fresh(), "never")
	first := d.order("place", "7", "100")
	require.Equal(t, first, d.order("place", "7", "100"))
	require.Contains(t, d.order("approve", "7"), "7          done")
	require.Equal(t, []string{"reserve", "charge", "ship"}, d.effects())

	code, _, errs := d.here("place", "7", "101")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "which has another input")
	code, _, errs = d.here("refuse", "7")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "the run has ended")
}

// here runs the program in this process.
func (d *desk) here(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = new(program).main(d.Context(), d.words(args), &out, &errs)
	return code, out.String(), errs.String()
}

// Rule: bad input gets a clear error and the right exit code.
func TestBadInput(t *testing.T) {
	d := newDesk(t, "", "never")
	for _, args := range [][]string{{}, {"sell"}, {"place", "1"}, {"place", "1", "x"}, {"place", "1", "-5"}, {"work", "1"}, {"-x"}} {
		code, _, errs := d.here(args...)
		require.Equal(t, 2, code, args)
		require.Contains(t, errs, "usage: order")
		require.NoDirExists(t, d.state)
	}
	code, _, errs := d.here("approve", "1")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no such run")
	require.Equal(t, 0, first(d.here("-h")))
}

func first(code int, _, _ string) int { return code }

// Rule: of a line that was cut off by the end of the machine nothing is believed, and what
// comes after it is whole.
func TestTornEffect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects.log")
	require.NoError(t, os.WriteFile(path, []byte("k1 reserve 1\nk2 "+strings.Repeat("x", 99)), 0o600))
	w, err := openWorld(path)
	require.NoError(t, err)
	for range 2 {
		for _, key := range []string{"k1", "k2"} {
			_, err := w.call(key, "again", "1")
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "k1 reserve 1\nk2 again 1\n", string(b))
}
