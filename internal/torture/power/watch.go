package power

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// imageTimeout and mostMemory limit the check of an image. A page that refers to itself
// makes a reader loop, or use all memory.
const (
	imageTimeout = 5 * time.Minute // also the limit before the first image: recording takes long on a busy machine
	mostMemory   = 1 << 30
)

// watched runs a try in a separate process, because a broken file may hang or kill the
// process. The process prints:
//
//	image where      the image that it checks next
//	tried n          the number of images since the last such line
//	violation text   the last line
//	end              the last line without a violation
func watched(t *harness.Try, role string, imageTimeout time.Duration) error {
	c, err := harness.Start(t.Ctx, nil, role, t.Dir, t.Seed)
	if err != nil {
		return err
	}
	last := "none yet"
	err = c.Follow(imageTimeout, func(what, text string) (done bool, err error) {
		switch what {
		case "image":
			last = text
		case "tried":
			n, err := strconv.Atoi(text)
			t.Count(n)
			return t.Enough(), err
		case "violation":
			return true, harness.ErrorOf(text)
		}
		return what == "end", nil
	})
	if errors.Is(err, harness.ErrEnded) {
		return fmt.Errorf("image %s: %w", last, err)
	}
	return err
}

// report is the number of images for a line "tried".
const report = 25

// tried is a try in its process.
type tried struct {
	dir    string
	seed   uint64
	rand   *rand.Rand
	untold int
}

// role returns the role that runs a try.
func role(try func(t *tried) error) func(harness.Args) error {
	return func(args harness.Args) error {
		seed := args.Uint(1)
		go boundMemory()
		go endWithInput()
		t := &tried{dir: args[0], seed: seed, rand: rand.New(rand.NewPCG(seed, 1))}
		if err := try(t); err != nil {
			harness.EmitError("violation", err)
			return nil
		}
		harness.Emit("tried", t.untold)
		harness.Emit("end")
		return nil
	}
}

// boundMemory ends a process that uses too much memory.
func boundMemory() {
	for range time.Tick(time.Second / 10) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > mostMemory {
			fmt.Fprintf(os.Stderr, "more than %d bytes of memory\n", mostMemory)
			os.Exit(1)
		}
	}
}

// cut checks roughly the given number of images of a log, beginning at an event.
func (t *tried) cut(r *recording, s story, from, rounds, images int) error {
	folder := filepath.Join(t.dir, "image")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	c := cuts{
		log: r.log, story: s, rand: t.rand, folder: folder, from: from, rounds: rounds, least: images,
		onImage: func(where string) { harness.Emit("image", where) },
		after: func() {
			if t.untold++; t.untold == report {
				harness.Emit("tried", t.untold)
				t.untold = 0
			}
		},
	}
	return c.run(context.Background())
}

func subfolder(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.Mkdir(path, 0o700)
}
