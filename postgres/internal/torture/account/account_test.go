package account

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// idOf returns an ID of a job that is retained, or not.
func idOf(t *testing.T, retained bool) pawl.ID {
	t.Helper()
	for {
		if id := pawl.NewID(time.Now()); (oracle.JobOf(id).Retain > 0) == retained {
			return id
		}
	}
}

// Rule: what was acknowledged has happened once, what was refused has not happened, and what is unknown may
// have happened as a whole. A verdict reports everything that breaks these rules.
func TestJudge(t *testing.T) {
	const (
		stored = "x begin enqueue 1 A; x end 1 done; "
		leased = stored + "x begin fetch 2 9; x end 2 3:A:0:0; "
		again  = "y begin fetch 2 9; y end 2 3:A:0:0; "
	)
	a, b, kept := idOf(t, false), idOf(t, false), idOf(t, true)
	type jobs = map[pawl.ID]pawl.State
	type rows = map[pawl.ID]int
	for _, test := range []struct {
		rule  string
		story string // A, B and K stand for jobs; K is retained
		jobs  jobs
		rows  rows
		wrong string // "" for nothing
	}{
		{"nothing", "", nil, nil, ""},
		{"acked", leased + "x begin settle 4 ack:3; x end 4 done", nil, nil, ""},
		{"lost", stored, nil, nil, "it is lost"},
		{"lost with its lease", leased, nil, nil, "it is lost"},
		{"left over", stored, jobs{a: pawl.Ready}, nil, "it is ready, and should have ended"},
		{"nobody's", "", jobs{a: pawl.Dead}, nil, "nobody enqueued it"},
		{"nobody's, and fetched", "x begin fetch 2 9; x end 2 3:A:0:0", nil, nil, "nobody enqueued it"},
		{"refused", "x begin enqueue 1 A; x end 1 refused", nil, nil, ""},
		{"refused, and fetched", "x begin enqueue 1 A; x end 1 refused; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "was refused, and it is stored"},
		{"unknown, and not stored", "x begin enqueue 1 A B; x end 1 unknown", nil, nil, ""},
		{"unknown, and half stored", "x begin enqueue 1 A B; x end 1 unknown; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "is missing, and others of its batch"},
		{"killed in the enqueue", "x begin enqueue 1 A; kill", nil, nil, ""},
		{"killed before the ack", leased + "kill; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, ""},
		{"killed in the ack", leased + "x begin settle 4 ack:3; kill", nil, nil, ""},
		{"killed in the ack, and ended by another", leased + "x begin settle 4 ack:3; kill; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, ""},
		{"acked twice", leased + "x begin settle 4 ack:3; x end 4 done; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "it ended 2 times"},
		{"acked, then again with one token", leased + "x begin settle 4 ack:3; x end 4 unknown; x begin settle 5 ack:3; x end 5 done", nil, nil, ""},
		{"the record stays", strings.ReplaceAll(leased, "A", "K") + "x begin settle 4 ack:3; x end 4 done", jobs{kept: pawl.Completed}, nil, ""},
		{"the record is lost", strings.ReplaceAll(leased, "A", "K") + "x begin settle 4 ack:3; x end 4 done", nil, nil, "its record is missing"},
		{"completed by nobody", stored, jobs{a: pawl.Completed}, nil, "nobody acked it"},
		{"abandoned", leased + "x begin settle 4 abandon:3; x end 4 done", jobs{a: pawl.Dead}, nil, ""},
		{"abandoned, and gone", leased + "x begin settle 4 abandon:3; x end 4 done", nil, nil, "it was abandoned, and is gone"},
		{"dead by nobody", leased, jobs{a: pawl.Dead}, nil, "nobody abandoned it"},
		{"abandoned and acked", leased + "x begin settle 4 abandon:3; x end 4 done; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "it ended 2 times"},
		{"booked", leased + "x begin settle 4 book:3; x end 4 done", nil, rows{a: 1}, ""},
		{"booked, and no row", leased + "x begin settle 4 book:3; x end 4 done", nil, nil, "1 transactions were acknowledged, and 0 took effect"},
		{"two rows", leased + "x begin settle 4 book:3; x end 4 done", nil, rows{a: 2}, "took effect 2 times"},
		{"unknown, and booked", leased + "x begin settle 4 book:3; x end 4 unknown", nil, rows{a: 1}, ""},
		{"unknown, and not booked", leased + "x begin settle 4 book:3; x end 4 unknown", nil, nil, "it is lost"},
		{"a row of a refused transaction", leased + "x begin settle 4 book:3; x end 4 refused", nil, rows{a: 1}, "took effect that was refused"},
		{"booked and acked", leased + "x begin settle 4 book:3; x end 4 unknown; kill; " + again + "y begin settle 4 ack:3; y end 4 done", nil, rows{a: 1}, "it ended 2 times"},
		{"a failure", leased + "x begin settle 4 nack:3; x end 4 done; y begin fetch 2 9; y end 2 3:A:1:0; y begin settle 4 ack:3; y end 4 done", nil, nil, ""},
		{"a failure that was not counted", leased + "x begin settle 4 nack:3; x end 4 done; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "0 failures were counted, and there were 1 to 1"},
		{"a failure that nobody had", stored + "y begin fetch 2 9; y end 2 3:A:1:0; y begin settle 4 ack:3; y end 4 done", nil, nil, "1 failures were counted, and there were 0 to 0"},
		{"a crash", leased + "kill; y begin fetch 2 9; y end 2 3:A:0:1; y begin settle 4 ack:3; y end 4 done", nil, nil, ""},
		{"a crash of a fetch without an answer", stored + "x begin fetch 2 9; kill; y begin fetch 2 9; y end 2 3:A:0:1; y begin settle 4 ack:3; y end 4 done", nil, nil, ""},
		{"a crash of a fetch of unknown outcome", stored + "x begin fetch 2 9; x end 2 unknown; y begin fetch 2 9; y end 2 3:A:0:1; y begin settle 4 ack:3; y end 4 done", nil, nil, ""},
		{"a crash that nobody had", stored + "y begin fetch 2 9; y end 2 3:A:0:1; y begin settle 4 ack:3; y end 4 done", nil, nil, "1 crashes were counted that nobody had"},
		{"a lease that was lost early", leased + "x begin settle 4 ack:3; x end 4 early; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "lost before it expired"},
		{"an extension of a lost lease", leased + "x lost 3 early; " + again + "y begin settle 4 ack:3; y end 4 done", nil, nil, "lost before it expired"},
		{"too many jobs", stored + "x begin fetch 2 0; x end 2 3:A:0:0; x begin settle 4 ack:3; x end 4 done", nil, nil, "0 at most"},
		{"an error that nobody understands", "x odd what", nil, nil, "no caller can understand"},
		{"an answer to nothing", "x end 1 done", nil, nil, "makes no sense"},
		{"a call without an answer", "x begin fetch 2 9; end", nil, nil, "ended without an answer"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			account := New()
			report(account, test.story, strings.NewReplacer("A", a.String(), "B", b.String(), "K", kept.String()))
			requireVerdict(t, test.wrong, account.Judge(Found{Jobs: test.jobs, Rows: test.rows}))
		})
	}
}

func requireVerdict(t *testing.T, wrong string, err error) {
	t.Helper()
	if wrong == "" {
		require.NoError(t, err)
	} else {
		require.ErrorContains(t, err, wrong)
	}
}

// report reports a story of the clients x and y. "kill" kills x, and "end" is its end.
func report(account *Account, story string, names *strings.Replacer) {
	for line := range strings.SplitSeq(story, ";") {
		switch line = strings.TrimSpace(line); line {
		case "":
		case "kill", "end":
			account.Ended("x", line == "kill")
		default:
			name, line, _ := strings.Cut(line, " ")
			account.Hear(name, names.Replace(line))
		}
	}
}

// Rule: a run that was started exists and has ended, and each transaction of its steps took effect once.
func TestJudgeRuns(t *testing.T) {
	const started = "x begin start 1 r; x end 1 done"
	type runs = map[string]Run
	for _, test := range []struct {
		rule, story string
		runs        runs
		wrong       string
	}{
		{"ended", started, runs{"r": {true, []int{1, 1}}}, ""},
		{"lost", started, nil, "run r is lost"},
		{"not ended", started, runs{"r": {false, []int{1}}}, "run r has not ended"},
		{"twice", started, runs{"r": {true, []int{1, 2}}}, "took effect [1 2] times"},
		{"never", started, runs{"r": {true, []int{1}}}, "took effect [1] times"},
		{"refused", "x begin start 1 r; x end 1 refused", nil, ""},
		{"refused, and there", "x begin start 1 r; x end 1 refused", runs{"r": {true, []int{1, 1}}}, "its start was refused"},
		{"unknown, and not there", "x begin start 1 r; x end 1 unknown", nil, ""},
		{"unknown, and there", "x begin start 1 r; kill", runs{"r": {true, []int{1, 1}}}, ""},
		{"nobody's", "", runs{"r": {true, []int{1, 1}}}, "nobody started it"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			account := New()
			report(account, test.story, strings.NewReplacer())
			requireVerdict(t, test.wrong, account.Judge(Found{Runs: test.runs}))
		})
	}
}

// Rule: the jobs of a key have their turns in order. A turn may be noted again, for example when the job is
// retried.
func TestJudgeTurns(t *testing.T) {
	a, b := idOf(t, false), idOf(t, false) // in this order
	for _, test := range []struct {
		turns map[string][]pawl.ID
		wrong string
	}{
		{map[string][]pawl.ID{"x": {a, a, b, b}, "y": {a}}, ""},
		{map[string][]pawl.ID{"x": {b}, "y": {a}}, ""},
		{map[string][]pawl.ID{"x": {b, a}}, "had its turn before"},
		{map[string][]pawl.ID{"x": {a, b, a}}, "had its turn before"},
	} {
		requireVerdict(t, test.wrong, New().Judge(Found{Turns: test.turns}))
	}
}

// Rule: only acknowledged operations count.
func TestCounts(t *testing.T) {
	a := idOf(t, false).String()
	account := New()
	report(account, "x begin enqueue 1 A; x end 1 done; x begin enqueue 2 B C; x end 2 refused; x begin fetch 3 9; x end 3 4:A:0:0; x begin settle 5 release:4; x end 5 done; "+
		"x begin settle 6 ack:4; x end 6 unknown", strings.NewReplacer("A", a, "B", idOf(t, false).String(), "C", idOf(t, false).String()))
	require.Equal(t, 1, account.Stored())
	require.Equal(t, 3, account.Answered())
}
