package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// Jobctl passes hostile files to the commands of jobctl.
var Jobctl = &harness.Family{
	Name:  "jobctl",
	Goals: "R7, S6",
	Method: "the same files through every command of jobctl: exit code, 2 s of CPU time, 256 MiB, no control byte in the " +
		"output, no wrong data, no change by reading",
	Unit: "files",
	PR:   5_000, Nightly: 400_000, Share: 85,
	Missing: harness.MissingSource,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		if err := makeBases(env.Ctx, env.Dir); err != nil {
			return nil, err
		}
		bases, err := loadBases(env.Ctx, env.Dir)
		if err != nil {
			return nil, err
		}
		c := &ctl{bases: bases}
		c.binary, err = buildJobctl(env.Ctx, env.Dir)
		if err == nil {
			err = c.soundAnswers(env)
		}
		return c.try, err
	},
}

// ctl is shared by the tries.
type ctl struct {
	binary string
	bases  []*base
	sound  map[*layout]map[string]bool // the output of reading commands for each sound file
}

// copiedName is the file that commands make from the hostile file.
const copiedName = "copied.db"

// graphName is a file with jobs that wait for each other.
const (
	graphName = "graph.jsonl"
	graph     = `{"kind":"k","name":"a"}` + "\n" + `{"kind":"k","after":["a"],"unique":"key"}` + "\n"
)

// line is a command line.
type line struct {
	words []string
	reads bool // it does not change the file
}

// forms are the arguments of the command lines for each command. JOB and RUN stand for an ID,
// STATE for a state of jobs, and COPY for a new file. A mark says that the line writes.
var forms = map[string][]string{
	"stats":        {"", "-o json"},
	"throughput":   {"", "--last 7d -o json"},
	"job list":     {"-n 0", "-n 0 -o jsonl", "-n 0 -o jsonl -s STATE"},
	"job show":     {"JOB", "-o jsonl JOB"},
	"job why":      {"JOB", "-o jsonl JOB"},
	"job logs":     {"JOB"},
	"job edit":     {"!JOB {}", "JOB {} --dry-run"},
	"job retry":    {"!JOB", "!--all -y"},
	"job cancel":   {"!JOB", "!JOB --cascade", "!--all -y"},
	"job delete":   {"!JOB", "!--all -y"},
	"job run-now":  {"!JOB", "!--all -y"},
	"job enqueue":  {`!kind {"a":[1,"b"]} --unique key --retain 1h --key a --cost 2`, "!kind --after JOB", "!--file " + graphName},
	"dead list":    {"-n 0", "-n 0 -o jsonl"},
	"dead summary": {"", "--by kind -o jsonl"},
	"dead retry":   {"!JOB", "!--all -y"},
	"dead delete":  {"!JOB", "!--all -y"},
	"dead forward": {"!JOB", "!--all -y --to-queue elsewhere"},
	"queue list":   {""},
	"queue show":   {"default"},
	"queue pause":  {"!default"},
	"queue resume": {"!default"},
	"queue purge":  {"!default --state ready -y", "!default --state delayed -y", "!default --state completed -y"},
	"key list":     {"a", "a -o jsonl"},
	"key show":     {"a key"},
	"limit list":   {""},
	"limit set":    {"!--pool p --pool-running 9", "!default --running 9 --rate-per-key 9/1s", "!default --max-waiting 999999", "!default --pool p --pool-running 9"},
	"limit reset":  {"!default", "!--pool p"},
	"key release":  {"a key", "a key --dry-run"},
	"group list":   {"-n 0"},
	"group show":   {"import/7"},
	"group close":  {"!import/7"},
	"group cancel": {"!import/7"},
	"db info":      {""},
	"db check":     {""},
	"db backup":    {"COPY"},
	"db compact":   {"COPY"},
	"db reap":      {"!"},
	salvageCommand: {"case.db COPY"},
	"export":       {""},
	"wf list":      {"-n 0", "-n 0 -o jsonl"},
	"wf verify":    {""},
	"wf show":      {"-v RUN", "-o jsonl RUN", "story:waits"},
	"wf stream":    {"RUN lines", "-o jsonl RUN lines --from 2"},
	"wf signal":    {`!RUN go "a"`},
	"wf fork":      {"!RUN --from step --id another"},
	"wf cancel":    {"!RUN", "!--all -y"},
	"wf terminate": {"!RUN", "!--all -y"},
	"wf pause":     {"!RUN", "!--all -y"},
	"wf resume":    {"!RUN", "!--all -y"},
	"wf prune":     {"!-y"},
	"work":         {"!--http --once"},

	"sched list":     {"-n 0", "-n 0 -o jsonl"},
	"sched show":     {"nightly", "-o jsonl nightly"},
	"sched history":  {"nightly"},
	"sched add":      {"!nightly @daily kind"},
	"sched set":      {"!nightly @hourly"},
	"sched reset":    {"!nightly"},
	"sched pause":    {"!nightly --note why"},
	"sched resume":   {"!nightly"},
	"sched trigger":  {"!nightly"},
	"sched backfill": {"!nightly --from 2026-01-01 --to 2026-01-02"},
	"sched remove":   {"!nightly -y"},

	"sched next": {}, "version": {}, "help": {}, "completion": {}, "man": {}, // commands that take no file
	"watch": {}, "job wait": {}, "import": {}, "top": {}, "ui": {}, // need an app, an export, a terminal, and a browser
}

// salvageCommand names its file in another way.
const salvageCommand = "db salvage"

// lines returns the command lines for a file, one of its jobs and one of its runs. An unknown
// command gets the ID of the job.
func lines(commands []string, id, run pawl.ID) (all []line) {
	fill := strings.NewReplacer("JOB", id.String(), "RUN", run.String(), "COPY", copiedName,
		"STATE", string(pawl.States()[int(id[15])%len(pawl.States())]))
	for _, c := range commands {
		args, known := forms[c]
		if !known {
			args = []string{"!JOB"}
		}
		for _, a := range args {
			a, writes := strings.CutPrefix(a, "!")
			words := append(strings.Fields(c), strings.Fields(fill.Replace(a))...)
			if c != salvageCommand {
				words = append([]string{"--db", "case.db"}, words...)
			}
			all = append(all, line{words, !writes})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { // writing commands come last
		switch {
		case a.reads == b.reads:
			return 0
		case a.reads:
			return -1
		}
		return 1
	})
	return all
}

// soundAnswers collects the output of jobctl for the sound files.
func (c *ctl) soundAnswers(env *harness.Env) error {
	c.sound = make(map[*layout]map[string]bool)
	d, err := startDriven(env.Ctx, c.binary, env.Dir)
	if err != nil {
		return err
	}
	defer d.close()
	for _, b := range c.bases {
		if err := os.WriteFile(filepath.Join(env.Dir, "case.db"), b.whole, 0o600); err != nil {
			return err
		}
		known, ran := make(map[string]bool), make(map[string]bool)
		for _, id := range b.ids {
			for _, l := range lines(d.commands, id, id) {
				words := strings.Join(l.words, " ")
				if !l.reads || !isJSON(l) || l.ofRuns() || ran[words] { // most name no job
					continue
				}
				ran[words] = true
				a, err := d.run(l.words)
				if err != nil || a.Code != 0 {
					return fmt.Errorf("jobctl %s of a sound file: exit %d: %s %w", l.words, a.Code, a.Stderr, err)
				}
				for text := range strings.Lines(string(a.Stdout)) {
					known[text] = true
				}
			}
		}
		c.sound[b.layout] = known
	}
	return nil
}

// ofRuns reports whether a command line is about workflow runs or schedules, and not about jobs.
func (l line) ofRuns() bool {
	return slices.Contains(l.words, "wf") || slices.Contains(l.words, "sched")
}

// isJSON reports whether a command line asks for jobs as JSON lines.
func isJSON(l line) bool {
	return !slices.Contains([]string{"stats", "throughput"}, l.words[2]) && slices.ContainsFunc(l.words, func(w string) bool { return strings.HasPrefix(w, "json") })
}

// ofOne is how many files one process handles.
const ofOne = 50

// try passes some files to all commands.
func (c *ctl) try(t *harness.Try) error {
	t.Count(0)
	var d *driven
	defer func() {
		if d != nil {
			d.close()
		}
	}()
	if err := os.WriteFile(filepath.Join(t.Dir, graphName), []byte(graph), 0o600); err != nil {
		return err
	}
	for n := 0; n < ofOne && !t.Enough(); n++ {
		h := forge(c.bases, seedOf(t.Seed, n), filepath.Join(t.Dir, "scratch.db"))
		if d == nil {
			var err error
			if d, err = startDriven(t.Ctx, c.binary, t.Dir); err != nil {
				return err
			}
		}
		commands := lines(d.commands, h.anyID(), h.anyRun())
		if h.rand.IntN(16) > 0 { // one file in sixteen takes every command, the others one command in eight
			commands = slices.DeleteFunc(commands, func(line) bool { return h.rand.IntN(8) > 0 })
		}
		intact := false // the file is there, as it was made
		for _, l := range commands {
			ended, err := c.carryOut(t, d, h, l, intact)
			intact = l.reads
			if err != nil && t.Ctx.Err() == nil {
				t.Violate(keep(t, n, h.how, fmt.Errorf("jobctl %s: %w", strings.Join(l.words, " "), err)))
			}
			if ended {
				d = nil
			}
			if err != nil {
				break
			}
		}
		t.Count(1)
	}
	return nil
}

// carryOut runs a command over a file, which it writes unless the one of the previous command is intact.
func (c *ctl) carryOut(t *harness.Try, d *driven, h *hostile, l line, intact bool) (ended bool, err error) {
	path := filepath.Join(t.Dir, "case.db")
	if !intact {
		if err := errors.Join(removed(path), h.write(path)); err != nil {
			return false, err
		}
	}
	if err := removed(filepath.Join(t.Dir, copiedName)); err != nil {
		return false, err
	}
	var a answer
	if h.rand.IntN(64) == 0 { // in a new process, as a user runs it
		a, err = c.process(t, l)
	} else if a, err = d.run(l.words); err != nil {
		return true, err
	}
	return false, errors.Join(err, c.judge(h, l, a), c.left(path, h, l))
}

// removed removes a file that may be missing.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// process runs a command in a new process.
func (c *ctl) process(t *harness.Try, l line) (a answer, err error) {
	cmd := exec.CommandContext(t.Ctx, c.binary, l.words...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.Dir, &stdout, &stderr
	err = cmd.Run()
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	return answer{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, err
}

// exits are the allowed exit codes for a file that no process has open: success, error, no match,
// damaged file, other format. A conflict is allowed for commands that write, and for the dry run of
// an edit, which has the result that the edit would have.
var exits = []int{0, 1, 3, 5, 7}

const exitConflict = 6

// exitNoApp is the code of commands that compare runs with the code of an app.
const exitNoApp = 4

// may reports whether an exit code is allowed for a command line.
func (l line) may(code int) bool {
	switch {
	case slices.Contains(exits, code):
		return true
	case code == exitConflict:
		return !l.reads || slices.Contains(l.words, "edit")
	}
	return code == exitNoApp && slices.Contains(l.words, "verify")
}

// judge judges the answer of a command.
func (c *ctl) judge(h *hostile, l line, a answer) error {
	switch {
	case a.Panic != "":
		return fmt.Errorf("panic: %s", a.Panic)
	case !l.may(a.Code):
		return fmt.Errorf("exit code %d: %s", a.Code, a.Stderr)
	case a.Code != 0 && len(a.Stderr) == 0:
		return fmt.Errorf("exit code %d without a message", a.Code)
	case a.Took > mostCPU:
		return fmt.Errorf("it took %v", a.Took.Round(time.Millisecond))
	case a.Bytes > mostBytes:
		return fmt.Errorf("it allocated %d MiB", a.Bytes>>20)
	}
	for _, out := range [][]byte{a.Stdout, a.Stderr} {
		if !utf8.Valid(out) {
			return fmt.Errorf("it printed invalid UTF-8: %q", out)
		}
		for _, r := range string(out) {
			if r != '\n' && !unicode.IsPrint(r) {
				return fmt.Errorf("it printed %U: %q", r, out)
			}
		}
	}
	if isJSON(l) {
		return c.sameLines(h, l, a)
	}
	return nil
}

// sameLines requires that each line of JSON equals one for the sound file, unless checksums
// were forged. The output for a run depends on its job, so it only has to be JSON. A summary
// that reports damage may count fewer jobs.
func (c *ctl) sameLines(h *hostile, l line, a answer) error {
	for text := range strings.Lines(string(a.Stdout)) {
		if !json.Valid([]byte(text)) {
			return fmt.Errorf("it printed invalid JSON: %q", text)
		}
		if h.forged || l.ofRuns() {
			continue
		}
		known := slices.ContainsFunc(h.sources, func(l *layout) bool {
			return c.sound[l][text] || a.Code == exitDamaged && partOfGroup(text, c.sound[l]) || partOfWhy(text, c.sound[l])
		})
		if !known {
			return fmt.Errorf("silently wrong: it printed %s", text)
		}
	}
	return nil
}

// exitDamaged is the exit code of jobctl for a file that it could not read in full.
const exitDamaged = 5

// left requires that a reading command left the file unchanged.
func (c *ctl) left(path string, h *hostile, l line) error {
	if !l.reads {
		return nil
	}
	return (&trial{hostile: h}).untouched(path)
}
