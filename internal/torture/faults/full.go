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

// Full limits the size of a process's file at random moments.
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

// fills is the number of full disks for one process.
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

// judgeFull judges the lines and the file of a child on full disks.
func judgeFull(t *harness.Try, path string, lines []string) error {
	var h childReport
	if err := errors.Join(h.hear(lines), h.check(t.Ctx, path)); err != nil {
		return err
	}
	if h.notes[fullNote] != fills || h.notes[refusedNote] < fills {
		return fmt.Errorf("the disk was full %d times, and refused %d: the try is none", h.notes[fullNote], h.notes[refusedNote])
	}
	t.Count(fills)
	return nil
}

// The notes of the child: a disk is full, an enqueue was refused.
const (
	fullNote    = "full"
	refusedNote = "refused"
)

// fullRole uses a queue whose disk is sometimes full.
func fullRole(args harness.Args) error {
	f := &filler{user: newUser(args.Uint(1)), path: args[0], takesSpace: fileLimit}
	return f.run()
}

// run uses a queue whose disk becomes full a few times, and ends in one of three ways.
func (f *filler) run() (err error) {
	defer harness.EndAfter(childTimeout)()
	if f.Queue, err = bolt.Open(f.path, options()); err != nil {
		return err
	}
	for range fills {
		if err := f.round(); err != nil {
			return err
		}
	}
	switch f.rand.IntN(3) {
	case 0: // end as if killed
		return nil
	case 1:
		return f.Queue.Close()
	}
	return f.reopen()
}

// reopen closes the queue and opens it again on a full disk. The recovery of the leases may
// not fit. If so, the open must work once there is room again.
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
	emitFound(f.Queue)
	return f.Queue.Close()
}

// filler is a user on a disk that becomes full.
type filler struct {
	*user
	path string

	// takesSpace fills the disk, and returns the function that frees it. Sure reports that
	// settles must work on the full disk, if the file has enough free pages.
	takesSpace func(f *filler) (giveBack func() error, sure bool, err error)

	used uint64 // bytes of the file in use when the queue was last open
}

// round fills the disk during work, and frees it again.
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
	harness.Emit(noteLine, fullNote)
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

// enoughPages is a number of free pages in the file with which every settle works. Most need
// less than ten, but a page of large payloads spans several and is written as a unit.
const enoughPages = 128

// settleAll settles all leases on a full disk.
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

// tooLarge stores large batches until they are refused.
func (f *filler) tooLarge() {
	for n, refused := 0, 0; refused < 4 && !f.ended && f.mayGoOn(n); n++ {
		if f.enqueue(100, 0) != nil {
			harness.Emit(noteLine, refusedNote)
			refused++
		}
	}
}

func (f *filler) measure() error {
	stats, err := f.Queue.Stats(background)
	f.used = uint64(stats.Size)
	return err
}

// brim stores jobs until not even a single one fits. After that, few settles work, because
// an ack also has to write.
func (f *filler) brim() {
	size := 32
	for n, refused := 0, 0; refused < 4 && !f.ended && f.mayGoOn(n); n++ {
		if err := f.enqueue(size, 0); err != nil {
			harness.Emit(noteLine, refusedNote)
			size = 1
			refused++
		}
	}
}

// mayGoOn bounds the enqueues, in case a full disk is never reported.
func (f *filler) mayGoOn(enqueues int) bool {
	const most = 3000 // a few hundred suffice
	if enqueues == most {
		violate("%d enqueues on a full disk succeeded", most)
		f.ended = true
	}
	return enqueues < most
}
