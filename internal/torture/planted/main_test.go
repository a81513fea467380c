package planted

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/torture/crash"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// liar never finds a violation, doubter always does. Only this test program has them.
var (
	liar    = &harness.Family{Name: "liar", Unit: "tries", Prepare: trying(nil)}
	doubter = &harness.Family{Name: "doubter", Unit: "tries", Prepare: trying(errors.New("doubt"))}
	idle    = &harness.Family{Name: "idle", Unit: "tries", Missing: func() string { return "needs rest" }}
)

func trying(err error) func(*harness.Env) (func(*harness.Try) error, error) {
	return func(*harness.Env) (func(*harness.Try) error, error) {
		return func(*harness.Try) error { return err }, nil
	}
}

// family is the family under test. It registers the role.
var family = Over([]*harness.Family{crash.Kill, liar, doubter, idle})

func TestMain(m *testing.M) {
	harness.Main()
	m.Run()
}

// plan returns a plan for a number of units.
func plan(units int) harness.Plan { return harness.Plan{Goal: units} }

// pick returns the faults with these names.
func pick(t *testing.T, names ...string) (some []Fault) {
	for _, name := range names {
		for _, f := range faults {
			if f.Name == name {
				some = append(some, f)
			}
		}
	}
	require.Len(t, some, len(names))
	return some
}

// of returns the family with only these faults, in a program that has all faults.
func of(program string, faults []Fault) *harness.Family {
	f := *family
	f.PR, f.Missing, f.Parallel = len(faults), nil, len(faults)
	f.Prepare = func(env *harness.Env) (func(*harness.Try) error, error) {
		p := planting{program, faults}
		return p.try, p.control(env)
	}
	return &f
}

// Rule: every fault has its place in the current source, and the program with all faults
// builds. Family kill finds two faults, on an idle machine in its first cycles. A fault that a kill cannot show
// is a violation.
func TestProgram(t *testing.T) {
	race.SkipBuilt(t)
	if testing.Short() {
		t.Skip("not with -short: it builds a program")
	}
	program, err := buildProgram(t.Context(), t.TempDir(), faults)
	require.NoError(t, err)

	some := pick(t, "an ack leaves the lease", "loses an attempt")
	for i := range some {
		some[i].By = by("kill", 100) // on a busy machine a cycle may end before its first ack
	}
	result := of(program, some).Run(t.Context(), plan(len(some)))
	require.Empty(t, result.First)
	require.GreaterOrEqual(t, result.Tried, len(some), "two at a time, so that there may be one more")

	hidden := pick(t, "no sync")
	hidden[0].By = []Hunt{{Family: "kill", Units: 5}}
	result = of(program, hidden).Run(t.Context(), harness.Plan{Goal: 1, First: true})
	require.NotEmpty(t, result.First)
	require.ErrorContains(t, result.First[0].Err, `fault "no sync"`)
	require.ErrorContains(t, result.First[0].Err, "family kill did not find it in 3 hunts: nothing in")
}

func TestFaultsAreDescribed(t *testing.T) {
	names := make(map[string]bool)
	for _, f := range faults {
		require.False(t, names[f.Name], "two faults are named %q", f.Name)
		names[f.Name] = true
		require.NotEmpty(t, f.Breaks, f.Name)
		require.NotEmpty(t, f.Edits, f.Name)
		require.NotEmpty(t, f.By, "nobody has to find %q", f.Name)
	}
}

// source is a package in which the tests below plant faults.
const source = `package p

// F calls b once.
func F() int {
	if a() { // reworded
		b(1, 2)
	}
	c()
	c()
	return 1
}

type T struct{}

func (*T) F() {
	switch {
	case x:
		d() // d comes first
		e()
	}
}
`

// plant returns the source with edits made in it.
func plant(t *testing.T, source string, edits ...edit) (string, error) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	p, err := parsePackage(dir)
	require.NoError(t, err)
	texts, err := p.apply(edits)
	return texts[file], err
}

func one(in, old, new string) edit { return edit{Edit{"p/" + in, old, new}, "one"} }
func two(in, old, new string) edit { return edit{Edit{"p/" + in, old, new}, "two"} }

// Rule: an edit changes the one expression, or the statements, that it describes.
func TestApply(t *testing.T) {
	for _, test := range []struct {
		rule      string
		edit      edit
		old, want string // what is different in the source
	}{
		{"an expression", one("F", "a()", "PLANTED"), "a()", `planted("one")`},
		{"an expression with an operator", one("F", "a()", "$ || PLANTED"), "a()", `(a() || planted("one"))`},
		{"a statement", one("F", "b(1,2)", skip), "b(1, 2)", `if !planted("one") { b(1, 2) }`},
		{"a statement with another layout and a comment", one("F", "if a() { b(1, 2,) }", "if PLANTED {}"),
			"if a() { // reworded\n\t\tb(1, 2)\n\t}", `if planted("one") {}`},
		{"statements that follow each other", one("F", "c(); c()", "PLANTED"), "c()\n\tc()", `planted("one")`},
		{"a method, and a comment between statements", one("T.F", "d(); e()", "PLANTED"), "d() // d comes first\n\t\te()", `planted("one")`},
	} {
		got, err := plant(t, source, test.edit)
		require.NoError(t, err, test.rule)
		require.Equal(t, strings.Replace(source, test.old, test.want, 1), got, test.rule)
	}
}

// Rule: several edits of a file do not depend on their order.
func TestApplySeveral(t *testing.T) {
	edits := []edit{one("F", "a()", "PLANTED"), two("T.F", "x", "PLANTED")}
	got, err := plant(t, source, edits...)
	require.NoError(t, err)
	require.Contains(t, got, `if planted("one") {`)
	require.Contains(t, got, `case planted("two"):`)
	slices.Reverse(edits)
	again, err := plant(t, source, edits...)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

// Rule: an edit without exactly one place is an error that names the fault and the place.
func TestApplyRefuses(t *testing.T) {
	for _, test := range []struct {
		edits []edit
		want  string
	}{
		{[]edit{one("F", "gone()", "PLANTED")}, `fault "one": p/F has 0 places like this, not one; adapt the fault to the source: gone()`},
		{[]edit{one("F", "c()", "PLANTED")}, `fault "one": p/F has 2 places like this`},
		{[]edit{one("F", "b(1", "PLANTED")}, `fault "one": p/F has 0 places like this`},
		{[]edit{one("G", "c()", "PLANTED")}, `fault "one": 0 functions are named p/G; adapt the fault to the source`},
		{[]edit{one("F", "a()", "true")}, `fault "one" would be in every process`},
		{[]edit{one("F", "if a() { b(1, 2) }", "PLANTED"), two("F", "a()", "PLANTED")}, `faults "one" and "two" change the same place`},
	} {
		_, err := plant(t, source, test.edits...)
		require.ErrorContains(t, err, test.want)
	}
}

// Rule: a fault does not depend on comments or blank lines. The test replaces all of them in
// every file that has a fault.
func TestFaultsIgnoreComments(t *testing.T) {
	module, err := harness.Source(t.Context())
	require.NoError(t, err)
	reworded := t.TempDir()
	comment := regexp.MustCompile(`(?m)(^|[ \t])// .*$`)
	for _, f := range faults {
		for _, e := range f.Edits {
			pkg, _ := path.Split(e.In)
			if _, err := os.Stat(filepath.Join(reworded, pkg, "p.done")); err == nil {
				continue
			}
			require.NoError(t, os.MkdirAll(filepath.Join(reworded, pkg), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(reworded, pkg, "p.done"), nil, 0o600))
			files, err := filepath.Glob(filepath.Join(module, pkg, "*.go"))
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				text = comment.ReplaceAll(text, []byte("$1// reworded\n"))
				require.NoError(t, os.WriteFile(filepath.Join(reworded, pkg, filepath.Base(file)), text, 0o600))
			}
		}
	}
	_, err = writeOverlay(reworded, t.TempDir(), faults)
	require.NoError(t, err)
}

// Rule: a verdict distinguishes a violation, no violation, and no try.
func TestVerdict(t *testing.T) {
	family := func(f *harness.Family, units int) string {
		result := f.Run(t.Context(), plan(units))
		return verdict(&result)
	}
	broken := &harness.Family{Name: "broken", Unit: "tries", Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
		return nil, errors.New("no luck")
	}}
	require.Equal(t, "nothing in 3 tries", family(&harness.Family{Unit: "tries", Parallel: 1, Prepare: liar.Prepare}, 3))
	require.Equal(t, "found doubt", family(doubter, 3))
	require.Equal(t, "untried needs rest", family(idle, 3))
	require.Equal(t, "untried could not be tried: no luck", family(broken, 3))
	require.Equal(t, "untried 0 of 3 tries before time was up",
		verdict(&harness.Result{Family: liar, Goal: 3}))
}
