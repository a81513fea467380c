package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Library passes hostile files to all functions of package bolt that open files.
var Library = &harness.Family{
	Name:  "hostile",
	Goals: "R7",
	Method: "damaged and hostile files of 29 classes, through every call of Open and OpenReader: no panic, fault, " +
		"hang, wrong data, or more than 256 MiB",
	Unit: "files",
	PR:   50_000, Nightly: 2_000_000, Share: 75,
	Prepare: prepare("hostile-files"),
}

// Salvage passes hostile files to Salvage.
var Salvage = &harness.Family{
	Name:   "salvage",
	Goals:  "R7",
	Method: "the same files through Salvage: its result opens, keeps every invariant, and has no wrong data",
	Unit:   "files",
	PR:     5_000, Nightly: 400_000, Share: 20,
	Prepare: prepare("hostile-salvage"),
}

func init() {
	harness.Role("hostile-files", files((*trial).run))
	harness.Role("hostile-salvage", files((*trial).save))
}

// prepare makes the sound files. Children in a role process the hostile ones.
func prepare(role string) func(*harness.Env) (func(*harness.Try) error, error) {
	return func(env *harness.Env) (func(*harness.Try) error, error) {
		dir := filepath.Join(env.Dir, "sound")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		return func(t *harness.Try) error { return batch(t, role, dir) }, makeBases(env.Ctx, dir)
	}
}

// perTry is the number of files for one child. The maps and locks that a panic leaves end
// with the process.
const perTry = 250

// seedOf returns the seed of the n-th file of a try.
func seedOf(try uint64, n int) uint64 { return try<<12 + uint64(n) }

// batch passes the files of a try to children. A dead child costs one file, not the rest.
func batch(t *harness.Try, role string, args ...any) error {
	t.Count(0)
	for from := 0; from < perTry && !t.Enough(); {
		next, err := child(t, role, from, args...)
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// silence is the time limit of a child between two lines.
const silence = 2 * mostWall

// child runs a child from a file on, and returns the next file.
func child(t *harness.Try, role string, from int, args ...any) (next int, err error) {
	c, err := harness.Start(t.Ctx, nil, role, append([]any{t.Dir, t.Seed, from, perTry}, args...)...)
	if err != nil {
		return 0, err
	}
	at, how, reported := from-1, "", false
	err = c.Follow(silence, func(word, rest string) (done bool, err error) {
		switch word {
		case "file":
			if at >= from {
				t.Count(1)
			}
			if t.Enough() {
				return true, nil
			}
			reported = false
			_, err = fmt.Sscanf(rest, "%d %q", &at, &how)
		case "wrong":
			reported = true
			t.Violate(keep(t, at, how, harness.ErrorOf(rest)))
			_, err = c.In.Write([]byte{'\n'})
		case "done":
			t.Count(1)
			return true, nil
		}
		return false, err
	})
	switch {
	case err == nil || t.Ctx.Err() != nil:
		return perTry, nil
	case !errors.Is(err, harness.ErrEnded):
		return 0, err
	case at < from:
		return 0, fmt.Errorf("the child did not begin: %w", err)
	case !reported:
		t.Violate(keep(t, at, how, err))
	}
	return at + 1, nil
}

// keep keeps the file of a violation.
func keep(t *harness.Try, n int, how string, wrong error) error {
	name := fmt.Sprintf("file-%d.db", n)
	if err := os.Rename(filepath.Join(t.Dir, "case.db"), filepath.Join(t.Dir, name)); err != nil {
		name = err.Error()
	}
	return fmt.Errorf("file %d (%s; %s): %w", n, name, how, wrong)
}

// files is the role of a child. Its arguments are its folder, the seed of the try, the range
// of files, and the folder of the sound files.
func files(run func(*trial, string) error) func(harness.Args) error {
	return func(args harness.Args) error {
		ctx := context.Background()
		bases, err := loadBases(ctx, args[4])
		if err != nil {
			return err
		}
		w := newWatch(func(err error) {
			wrong(err)
			os.Exit(3)
		})
		w.start()
		for n := args.Int(2); n < args.Int(3); n++ {
			h := forge(bases, seedOf(args.Uint(1), n), filepath.Join(args[0], "scratch.db"))
			harness.Emit("file", n, strconv.Quote(h.how))
			path := filepath.Join(args[0], "case.db")
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			if err := run(&trial{hostile: h, ctx: ctx, dir: args[0], watch: w}, path); err != nil {
				wrong(err)
			}
		}
		harness.Emit("done")
		return nil
	}
}

// wrong reports a violation and waits until the family has kept the file.
func wrong(err error) {
	harness.EmitError("wrong", err)
	_, _ = os.Stdin.Read(make([]byte, 1))
}
