// Package soak has the family that works for long and counts exactly.
//
// A soak is rounds of as many jobs each, of many sorts, on one file. Of each job it is
// known beforehand what is to become of it: how often it fails, whether it dies and what
// happens to it then. What is told of it, by the answer of Enqueue, by its runs and by the
// queue's events, goes into a ledger, which is judged when the round is over and the queue
// is empty. The ledger is as large as a round, however long the soak is.
//
// The processes at work live longer and longer: some are killed within their rounds, and
// between two kills twice as many rounds are in order as before, over which memory,
// goroutines, open files and the file must not grow.
package soak

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// roundSize is how many jobs a round has, a multiple of blockSize.
const roundSize = 79 * blockSize

// firstSoak is how many rounds the first soak of a run has. It is in memory; what follows
// when more is asked for is on the disk.
const firstSoak = 1_000_000/roundSize + 1

// Soak works for long and counts exactly.
var Soak = &harness.Family{
	Name:  "soak",
	Goals: "R10",
	Method: "jobs of seventeen sorts, workers, kills, restarts, backups; the end of each job, all counts, memory, " +
		"goroutines, files",
	Unit: "jobs",
	PR:   1_000_000, Nightly: 50_000_000, Share: 50,
	Parallel: 1,
	Prepare:  func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, roundSize), nil },
}

// prepare makes the tries of rounds of this size. The first is in memory.
func prepare(env *harness.Env, size int) func(*harness.Try) error {
	var tries atomic.Int64
	return func(t *harness.Try) error {
		s := soak{Try: t, size: size, folder: filepath.Join(t.Dir, "queue"), rounds: firstSoak}
		if n := tries.Add(1); n > 1 {
			s.folder, s.rounds = filepath.Join(env.Disk, strconv.FormatInt(n, 10)), math.MaxInt
		}
		if err := os.Mkdir(s.folder, 0o700); err != nil {
			return err
		}
		return s.run()
	}
}

// soak is one of them, seen from outside.
type soak struct {
	*harness.Try
	size   int
	folder string // has the queue's file and nothing else
	rounds int    // at most
}

// killed reports whether processes are killed in a round: in the first two, and then after
// twice as many rounds each time.
func killed(round int) bool {
	for next := 24; next <= round; next *= 2 {
		if next == round {
			return true
		}
	}
	return round < 2
}

// mostKills is how many processes are killed in such a round.
const mostKills = 3

// run plays rounds until that is enough.
func (s soak) run() error {
	o := orders{path: filepath.Join(s.folder, "jobs.db"), ledger: filepath.Join(s.Dir, "ledger"), size: s.size}
	for o.round < s.rounds && !s.Enough() {
		killed, err := s.process(&o)
		if err == nil && killed {
			err = s.tidy()
		}
		if err != nil {
			return err
		}
	}
	if s.Ctx.Err() != nil {
		return nil
	}
	return s.leftOver()
}

// process has one process at work until it is killed or it is enough.
func (s soak) process(o *orders) (killed bool, err error) {
	c, err := harness.Start(s.Ctx, nil, roleName, o.args()...)
	if err != nil {
		return false, err
	}
	defer func() {
		c.Kill()
		c.Rest()
	}()
	var samples []sample
	killAt := s.lines(*o)
	for {
		line, err := c.Line()
		if s.Ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("round %d: %w", o.round, err)
		}
		switch word, rest, _ := strings.Cut(line, " "); word {
		case at:
			if killAt--; killAt == 0 {
				o.kills++
				return true, flat(samples)
			}
		case wrong:
			if text, err := strconv.Unquote(rest); err == nil {
				rest = text
			}
			return false, fmt.Errorf("%s", rest)
		case ended:
			one, err := parseSample(rest)
			if err != nil {
				return false, err
			}
			samples = append(samples, one)
			s.Count(s.size)
			o.round, o.kills = o.round+1, 0
			killAt = s.lines(*o)
			if o.round >= s.rounds || s.Enough() {
				return false, s.stop(c, samples)
			}
			if _, err := fmt.Fprintln(c.In, goOn); err != nil {
				return false, fmt.Errorf("round %d: %w", o.round, err)
			}
		default:
			return false, fmt.Errorf("round %d: the process says %q", o.round, line)
		}
	}
}

// lines is after how many lines of progress a process is killed; 0 for never.
func (s soak) lines(o orders) int {
	if !killed(o.round) || o.kills >= mostKills {
		return 0
	}
	return 1 + s.Rand.IntN(2*progressLines)
}

// stop lets a process end in peace, and requires that it used no more in the end than in
// the beginning.
func (s soak) stop(c *harness.Child, samples []sample) error {
	_ = c.In.Close()
	for _, line := range c.Rest() {
		return fmt.Errorf("at its end the process says %q", line)
	}
	if text := c.Stderr(); text != "" {
		return fmt.Errorf("at its end the process says %q", text)
	}
	return flat(samples)
}

// tidy removes what a process leaves that is killed while it makes a copy: the copy, and the
// temporary file that it is made in, which nobody opens.
func (s soak) tidy() error {
	for _, name := range []string{"jobs.db.backup", "jobs.db.compact", ".pawl-new-*"} {
		left, err := filepath.Glob(filepath.Join(s.folder, name))
		if err != nil {
			return err
		}
		if len(left) > 1 {
			return fmt.Errorf("a process that was killed has left %v", left)
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftOver requires that nothing is left in the folder but the file.
func (s soak) leftOver() error {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "jobs.db" {
			return fmt.Errorf("the queue left the file %s behind", e.Name())
		}
	}
	return nil
}
