package crash

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Admin kills processes during rare and large operations: creation, recovery, backup,
// compaction and close.
var Admin = &harness.Family{
	Name:  "kill-admin",
	Goals: "R2",
	Method: "SIGKILL during creation, recovery, backup, compaction with its rename, and close; then every file " +
		"under its final name is complete",
	Unit: "kills",
	PR:   300, Nightly: 10_000, Share: 10,
	Prepare: prepareAdmin,
}

func init() { harness.Role("kill-admin", adminRole) }

// scene is a rare operation of a process on a file.
type scene struct {
	name string

	// base makes the file for the scene, and want is its content after any number of kills.
	// Both are nil for scenes that report a story.
	base func(path string) error
	want contents

	// do runs in the process. The kill comes after its line harness.Up.
	do func(path string, seed uint64) error

	// others are the suffixes of other files that may exist.
	others []string

	took  time.Duration // duration without a kill
	wrong error         // a violation without a kill
}

// scenes are all scenes. Some start without a file.
var scenes = []*scene{
	{name: "recovery", base: leasedFile, do: openAlone},
	{name: "creation", do: openAlone},
	{name: "compaction", base: mixedFile, do: compact, others: []string{compacted}},
	{name: "backup", do: backUp, others: []string{backup}},
	{name: "close", do: workAndClose},
}

// prepareAdmin makes the files of the scenes, and measures each scene.
func prepareAdmin(env *harness.Env) (func(*harness.Try) error, error) {
	for _, s := range scenes {
		if err := s.prepare(env); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return func(t *harness.Try) error {
		s := scenes[t.Seed%uint64(len(scenes))]
		if err := s.try(t, filepath.Join(env.Dir, s.name)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		return nil
	}, nil
}

// prepare makes the scene's file, and runs the scene on a copy of it.
func (s *scene) prepare(env *harness.Env) (err error) {
	base, copied := filepath.Join(env.Dir, s.name), filepath.Join(env.Dir, s.name+"-undisturbed")
	if s.base != nil {
		if err := errors.Join(s.base(base), harness.CopyFile(base, copied)); err != nil {
			return err
		}
	}
	c, err := harness.Start(env.Ctx, nil, "kill-admin", s.name, copied, 1)
	if err != nil {
		return err
	}
	if _, err := c.Line(); err != nil {
		return err
	}
	began := time.Now()
	if _, err := c.End(); err != nil {
		return err
	}
	s.took = time.Since(began)
	if s.base != nil {
		s.want, s.wrong = read(env.Ctx, copied)
	}
	return nil
}

// try kills a few processes in the scene, one after another, and then checks the files.
func (s *scene) try(t *harness.Try, base string) error {
	if s.wrong != nil {
		return fmt.Errorf("undisturbed: %w", s.wrong)
	}
	path := filepath.Join(t.Dir, "jobs.db")
	if s.base != nil {
		if err := harness.CopyFile(base, path); err != nil {
			return err
		}
	}
	story := s.base == nil && s.name != "creation"
	kills := 1 + t.Rand.IntN(3)
	var lines []string
	for n := range kills {
		if story && n > 0 {
			break // each process has its own story
		}
		said, killed, err := t.KillWithin(s.took, 0, "kill-admin", s.name, path, t.Rand.Uint64())
		if err != nil {
			return err
		}
		lines = said
		if !killed { // it ended before the kill, which does not count
			t.Count(0)
			break
		}
		t.Count(1)
	}
	return s.check(t, path, lines, kills)
}

// adminRole runs a scene.
func adminRole(args harness.Args) error {
	for _, s := range scenes {
		if s.name == args[0] {
			harness.Emit(harness.Up)
			return s.do(args[1], args.Uint(2))
		}
	}
	return fmt.Errorf("there is no scene %q", args[0])
}
