package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// Full has the system refuse a process to let its file grow, at random moments.
var Full = &harness.Family{
	Name:  "full",
	Goals: "R5",
	Method: "a limit of the file's size (RLIMIT_FSIZE) at any byte, at the end of the used pages, or at its size; " +
		"an enqueue reports it, settlements work, and everything works when there is room again",
	Unit: "full disks",
	PR:   500, Nightly: 20_000, Share: 12,
	Missing: missingLimit,
	Prepare: harness.Each(full),
}

func init() { harness.Role("faults-full", fullRole) }

// fills is how often a process meets a full disk.
const fills = 5

func full(t *harness.Try) error {
	path := filepath.Join(t.Dir, "jobs.db")
	c, err := harness.Start(t.Ctx, nil, "faults-full", path, t.Rand.Uint64())
	if err != nil {
		return err
	}
	lines, err := c.End()
	if err != nil {
		return fmt.Errorf("the process said: %w", err)
	}
	return judgeFull(t, path, lines)
}

// judgeFull judges what a child told that uses a queue on full disks, and the file it left.
func judgeFull(t *harness.Try, path string, lines []string) error {
	var h heard
	if err := errors.Join(h.hear(lines), h.check(t.Ctx, path)); err != nil {
		return err
	}
	if h.notes[fullNote] != fills || h.notes[refusedNote] < fills {
		return fmt.Errorf("the disk was full %d times, and refused %d: the try is none", h.notes[fullNote], h.notes[refusedNote])
	}
	t.Count(fills)
	return nil
}

// What the child notes: a disk is full, an enqueue was refused.
const (
	fullNote    = "full"
	refusedNote = "refused"
)

// fullRole uses a queue whose disk is full now and then.
func fullRole(args harness.Args) error {
	f := &filler{user: newUser(args.Uint(1)), path: args[0], takesSpace: fileLimit}
	return f.run()
}

// run uses a queue whose disk becomes full a few times, and ends it in one of three ways.
func (f *filler) run() (err error) {
	defer watch()()
	if f.Queue, err = bolt.Open(f.path, options()); err != nil {
		return err
	}
	for range fills {
		if err := f.round(); err != nil {
			return err
		}
	}
	switch f.rand.IntN(3) {
	case 0: // as if it were killed
		return nil
	case 1:
		return f.Queue.Close()
	}
	return f.reopen()
}

// reopen closes the queue and opens it again on a full disk. Taking back the leases may not
// fit, and then it works when there is room again.
func (f *filler) reopen() error {
	if err := errors.Join(f.fetch(20), f.measure(), f.Queue.Close()); err != nil {
		return err
	}
	giveBack, _, err := f.takesSpace(f)
	if err != nil {
		return err
	}
	f.Queue, err = bolt.Open(f.path, options())
	if err != nil && !errors.Is(err, bolt.ErrDisk) {
		violate("the file on a full disk: %v", err)
	}
	if err := giveBack(); err != nil {
		return err
	}
	if err != nil {
		if f.Queue, err = bolt.Open(f.path, options()); err != nil {
			violate("the file, when there was room again: %v", err)
			return nil
		}
	}
	tellFound(f.Queue)
	return f.Queue.Close()
}

// filler is a user whose disk becomes full.
type filler struct {
	*user
	path string

	// takesSpace makes the disk full, and returns what ends that. Sure says that a settle has
	// to work meanwhile, as far as it needs no page more than there are.
	takesSpace func(f *filler) (giveBack func() error, sure bool, err error)

	used uint64 // bytes of the file that are, when the queue was last open
}

// round is a disk that becomes full amid work, and has room again.
func (f *filler) round() error {
	works := func(what string, do func() error) bool {
		err := do()
		if err != nil {
			violate("%s while there was room: %v", what, err)
		}
		return err == nil
	}
	for range 1 + f.rand.IntN(20) {
		if !works("a call", f.step) {
			return nil
		}
	}
	if !works("an enqueue", func() error { return f.enqueue(1+f.rand.IntN(60), 0) }) ||
		!works("a fetch", func() error { return f.fetch(1 + f.rand.IntN(40)) }) {
		return nil
	}
	if err := f.measure(); err != nil {
		return err
	}
	giveBack, sure, err := f.takesSpace(f)
	if err != nil {
		return err
	}
	harness.Tell(noteLine, fullNote)
	if f.rand.IntN(2) == 0 {
		f.tooLarge()
	} else {
		f.brim()
	}
	if err := f.settleAll(sure); err != nil {
		return err
	}
	if err := giveBack(); err != nil {
		return err
	}
	if f.ended {
		violate("a full disk has stopped the queue")
	}
	return nil
}

// enoughPages is with how many free pages of the file every settle works. Most need less than
// ten, but a page of the file that has large payloads is as large as two of those, and is
// written as one.
const enoughPages = 128

// settleAll ends all leases on a full disk.
func (f *filler) settleAll(sure bool) error {
	for len(f.held) > 0 && !f.ended {
		stats, err := f.Queue.Stats(background)
		if err != nil {
			return err
		}
		err = f.settle(oracle.Verbs[f.rand.IntN(len(oracle.Verbs))])
		if err != nil && sure && stats.Free/int64(os.Getpagesize()) >= enoughPages {
			violate("a settle on a full disk, with %d free bytes in the file: %v", stats.Free, err)
		}
		if f.rand.IntN(4) == 0 {
			_ = f.enqueue(1, 0)
		}
	}
	return nil
}

// tooLarge stores more than there is room for, until that is refused.
func (f *filler) tooLarge() {
	for n, refused := 0, 0; refused < 4 && !f.ended && f.mayGoOn(n); n++ {
		if f.enqueue(100, 0) != nil {
			harness.Tell(noteLine, refusedNote)
			refused++
		}
	}
}

func (f *filler) measure() error {
	stats, err := f.Queue.Stats(background)
	f.used = uint64(stats.Size)
	return err
}

// brim stores jobs until not even a single one fits. Then few settles work: what a full disk
// refuses, an ack too needs to write.
func (f *filler) brim() {
	size := 32
	for n, refused := 0, 0; refused < 4 && !f.ended && f.mayGoOn(n); n++ {
		if err := f.enqueue(size, 0); err != nil {
			harness.Tell(noteLine, refusedNote)
			size = 1
			refused++
		}
	}
}

// mayGoOn ends what would have no end if a full disk were not told.
func (f *filler) mayGoOn(enqueues int) bool {
	const most = 3000 // some hundred are enough
	if enqueues == most {
		violate("%d enqueues on a full disk were answered", most)
		f.ended = true
	}
	return enqueues < most
}
