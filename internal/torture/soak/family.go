// Package soak has the family that works for a long time and counts exactly.
//
// A soak is a sequence of rounds on one file, each with the same number of jobs of many
// classes. The fate of each job is known in advance: its failures, whether it becomes dead,
// and what follows. A ledger records the answer of Enqueue, the attempts and the events of each
// job. The family judges it when the round is over and the queue is empty. The ledger grows
// with the round, not with the soak.
//
// Each process lives longer than the one before. Some are killed within a round, and the
// number of rounds between two kills doubles. Memory, goroutines, open files and the file
// must not grow over these rounds.
package soak

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// roundSize is the number of jobs in a round, a multiple of blockSize.
const roundSize = 79 * blockSize

// firstSoak is the number of rounds in the first soak of a run, which is in memory. Further
// soaks are on the disk.
const firstSoak = 1_000_000/roundSize + 1

// Soak works for a long time and counts exactly.
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

// prepare returns the tries of rounds with this size. The first is in memory.
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

// soak is a soak in the parent process.
type soak struct {
	*harness.Try
	size   int
	folder string // has the queue's file and nothing else
	rounds int    // maximum number of rounds
}

// killed reports whether a round has kills: the first two rounds, and then rounds at doubling
// distances.
func killed(round int) bool {
	for next := 24; next <= round; next *= 2 {
		if next == round {
			return true
		}
	}
	return round < 2
}

// mostKills is the maximum number of kills in a round with kills.
const mostKills = 3

// run runs rounds until the goal.
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

// process runs one process until a kill or the goal.
func (s soak) process(o *orders) (killed bool, err error) {
	c, err := harness.Start(s.Ctx, nil, roleName, o.args()...)
	if err != nil {
		return false, err
	}
	var samples []sample
	killAt := s.lines(*o)
	err = c.Follow(longestRound, func(word, rest string) (done bool, err error) {
		switch word {
		case at:
			if killAt--; killAt == 0 {
				o.kills++
				killed = true
				return true, flat(samples)
			}
		case wrong:
			return true, harness.ErrorOf(rest)
		case ended:
			one, err := parseSample(rest)
			if err != nil {
				return true, err
			}
			samples = append(samples, one)
			s.Count(s.size)
			o.round, o.kills = o.round+1, 0
			killAt = s.lines(*o)
			if o.round >= s.rounds || s.Enough() {
				return true, s.stop(c, samples)
			}
			_, err = fmt.Fprintln(c.In, goOn)
			return false, err
		default:
			return true, fmt.Errorf("round %d: the process printed %q %q", o.round, word, rest)
		}
		return false, nil
	})
	if s.Ctx.Err() != nil {
		return false, nil
	}
	if errors.Is(err, harness.ErrEnded) {
		err = fmt.Errorf("round %d: %w", o.round, err)
	}
	return killed, err
}

// longestRound is more than a round takes. A stuck process ends earlier by itself.
const longestRound = 10 * time.Minute

// lines returns the number of lines "at" before a kill, 0 for no kill.
func (s soak) lines(o orders) int {
	if !killed(o.round) || o.kills >= mostKills {
		return 0
	}
	return 1 + s.Rand.IntN(2*progressLines)
}

// stop lets a process end, and requires that its resource use did not grow.
func (s soak) stop(c *harness.Child, samples []sample) error {
	_ = c.In.Close()
	for _, line := range c.Rest() {
		return fmt.Errorf("at its end the process printed %q", line)
	}
	if text := c.Stderr(); text != "" {
		return fmt.Errorf("at its end the process printed %q", text)
	}
	return flat(samples)
}

// tidy removes the copy and the temporary file that a killed process may leave.
func (s soak) tidy() error {
	for _, name := range []string{"jobs.db.backup", "jobs.db.compact", ".pawl-new-*"} {
		left, err := filepath.Glob(filepath.Join(s.folder, name))
		if err != nil {
			return err
		}
		if len(left) > 1 {
			return fmt.Errorf("a killed process left %v", left)
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftOver requires that the folder has no other file than the queue's.
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
