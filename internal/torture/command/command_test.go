package command

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// stub is a command with families that do what the test says.
func stub(tries map[string]func(*harness.Try) error) *Command {
	c := &Command{Line: "go run ./torture", Each: 13 * time.Minute, Night: 3 * time.Hour, Summary: func() string { return "All is said." }}
	for _, name := range []string{"quiet", "broken", "poor"} {
		try, ok := tries[name]
		if !ok {
			continue
		}
		f := &harness.Family{Name: name, Goals: "R0", Method: "none", Unit: "tries", PR: 3, Nightly: 30, Share: 1, Parallel: 1,
			Prepare: func(*harness.Env) (func(*harness.Try) error, error) { return try, nil }}
		if name == "poor" {
			f.Missing = func() string { return "a tool that is not there" }
		}
		c.Families = append(c.Families, f)
	}
	return c
}

func (c *Command) torture(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = c.run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func quiet(*harness.Try) error  { return nil }
func broken(*harness.Try) error { return errors.New("it broke") }

// Rule: the exit code is 1 when a promise was not kept, and the table names what could not
// be tried.
func TestRun(t *testing.T) {
	c := stub(map[string]func(*harness.Try) error{"quiet": quiet, "poor": quiet})
	code, out, progress := c.torture(t)
	require.Zero(t, code)
	require.Contains(t, out, "a tool that is not there")
	require.Contains(t, out, "not tried on this machine: poor\nno violation\n")
	require.Contains(t, progress, "quiet: 3 tries\n")

	code, out, _ = c.torture(t, "-night", "-family", "quiet")
	require.Zero(t, code)
	require.Contains(t, out, "30 tries")

	c = stub(map[string]func(*harness.Try) error{"quiet": quiet, "broken": broken})
	code, out, _ = c.torture(t, "-family", "broken", "-seed", "17")
	require.Equal(t, 1, code)
	require.Contains(t, out, "broken, seed 17: it broke\n  repeat: go run ./torture -family broken -seed 17\n")
	require.Contains(t, out, "VIOLATIONS, or no try in time: broken\n")
}

// Rule: -from names the first seed, and the seeds behind it follow.
func TestFrom(t *testing.T) {
	var seeds []uint64
	c := stub(map[string]func(*harness.Try) error{"quiet": func(t *harness.Try) error {
		seeds = append(seeds, t.Seed)
		return nil
	}})
	code, _, _ := c.torture(t, "-from", "17")
	require.Zero(t, code)
	require.Equal(t, []uint64{17, 18, 19}, seeds)
}

// Rule: a command line that cannot be carried out is exit code 2, and says why.
func TestBadCommandLine(t *testing.T) {
	c := stub(map[string]func(*harness.Try) error{"quiet": quiet, "broken": broken})
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"-family", "mild"}, `there is no family "mild"; there are quiet, broken`},
		{[]string{"-seed", "1"}, "name the family with -family"},
		{[]string{"quiet"}, `unexpected argument "quiet"`},
		{[]string{"-budget", "long"}, "budget"},
	} {
		code, out, says := c.torture(t, test.args...)
		require.Equal(t, 2, code)
		require.Empty(t, out)
		require.Contains(t, says, test.says)
	}
}

// Rule: when time is up, the tries that are left are reported.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := false
		c := stub(map[string]func(*harness.Try) error{"quiet": func(t *harness.Try) error {
			if !tried {
				tried = true
				return nil
			}
			<-t.Ctx.Done()
			return t.Ctx.Err()
		}})
		c.Families[0].Parallel = 1
		began := time.Now()
		code, out, _ := c.torture(t, "-budget", "50ms")
		require.Zero(t, code)
		require.Contains(t, out, "out of time: quiet")
		require.Less(t, time.Since(began), time.Minute)

		c = stub(map[string]func(*harness.Try) error{"quiet": func(t *harness.Try) error { <-t.Ctx.Done(); return t.Ctx.Err() }})
		code, _, _ = c.torture(t, "-budget", "50ms")
		require.Equal(t, 1, code, "a family that did not come to try anything has shown nothing")
	})
}

// Rule: the report replaces the table in a document and nothing else of it.
func TestReport(t *testing.T) {
	c := stub(map[string]func(*harness.Try) error{"quiet": quiet, "poor": quiet})
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+c.tableBegins()+"old\n"+tableEnds+"after\n"), 0o600))
	code, _, _ := c.torture(t, "-report", path)
	require.Zero(t, code)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(b)
	require.True(t, strings.HasPrefix(text, "before\n"+c.tableBegins()))
	require.True(t, strings.HasSuffix(text, tableEnds+"after\n"))
	require.NotContains(t, text, "old")
	require.Contains(t, text, "| quiet | R0 | none | 3 tries | 3 | 0 |")
	require.Contains(t, text, "\n\nAll is said.\n\n"+tableEnds)
	require.Contains(t, text, "a tool that is not there")

	require.NoError(t, os.WriteFile(path, []byte("no place"), 0o600))
	code, _, says := c.torture(t, "-report", path)
	require.Equal(t, 1, code)
	require.Contains(t, says, "has no place for the table")
}

// Rule: a document without a place for the table, a name that two families have, and a family that
// the table cannot show are errors.
func TestCheck(t *testing.T) {
	c := stub(map[string]func(*harness.Try) error{"quiet": quiet, "broken": broken})
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte(c.tableBegins()+tableEnds), 0o600))
	require.NoError(t, c.Check(path))
	for says, spoil := range map[string]func(f *harness.Family){
		"two families":     func(f *harness.Family) { f.Name = "broken" },
		"cannot show":      func(f *harness.Family) { f.Method = "a|b" },
		"has no share":     func(f *harness.Family) { f.Share = 0 },
		"fewer in a night": func(f *harness.Family) { f.Nightly = f.PR - 1 },
		"has no goal":      func(f *harness.Family) { f.PR = 0 },
		"cannot be chosen": func(f *harness.Family) { f.Name = "a,b" },
		"cannot show \"\"": func(f *harness.Family) { f.Goals = "" },
	} {
		before := *c.Families[0]
		spoil(c.Families[0])
		require.ErrorContains(t, c.Check(path), says)
		*c.Families[0] = before
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, c.Check(path), "has no place for the table")
}
