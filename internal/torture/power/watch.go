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
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// patience is how long an image may take. A page that refers to itself has a reader go
// round for ever, or until all memory is used.
const (
	patience   = 30 * time.Second
	mostMemory = 1 << 30
)

// watched has a try run in a process of its own, which a broken file may hang or kill, and
// hears from it.
//
//	image where      what is looked at now
//	tried n          so many more images are behind it
//	violation text   and the end
//	end              all were looked at
func watched(t *harness.Try, role string, patience time.Duration) error {
	c, err := harness.Start(t.Ctx, nil, role, t.Dir, t.Seed)
	if err != nil {
		return err
	}
	defer func() {
		c.Kill()
		c.Rest()
	}()
	last := "none yet"
	timer := time.AfterFunc(patience, c.Kill)
	defer timer.Stop()
	for {
		line, err := c.Line()
		hung := !timer.Reset(patience) // it has fired, and killed the process
		if err != nil {
			if hung {
				err = fmt.Errorf("no end in %v", patience)
			}
			return fmt.Errorf("image %s: %w", last, err)
		}
		what, text, _ := strings.Cut(line, " ")
		switch what {
		case "image":
			last = text
		case "tried":
			n, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			if t.Count(n); t.Enough() {
				return nil
			}
		case "violation":
			text, err := strconv.Unquote(text)
			if err != nil {
				return err
			}
			return errors.New(text)
		case "end":
			return nil
		}
	}
}

// report is how many images are told together.
const report = 25

// tried is the process in which a try runs.
type tried struct {
	dir    string
	seed   uint64
	rand   *rand.Rand
	untold int
}

// role makes a role of a try, which tells what comes of it.
func role(try func(t *tried) error) func(harness.Args) error {
	return func(args harness.Args) error {
		seed := args.Uint(1)
		go boundMemory()
		go endWithInput()
		t := &tried{dir: args[0], seed: seed, rand: rand.New(rand.NewPCG(seed, 1))}
		if err := try(t); err != nil {
			harness.Tell("violation", strconv.Quote(err.Error()))
			return nil
		}
		harness.Tell("tried", t.untold)
		harness.Tell("end")
		return nil
	}
}

// boundMemory ends a process that a broken file has use up memory.
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

// cut looks at images of a log, about so many, from an event on.
func (t *tried) cut(r *recording, s story, from, rounds, images int) error {
	folder := filepath.Join(t.dir, "image")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	c := cuts{
		log: r.log, story: s, rand: t.rand, folder: folder, from: from, rounds: rounds, least: images,
		heard: func(where string) { harness.Tell("image", where) },
		after: func() {
			if t.untold++; t.untold == report {
				harness.Tell("tried", t.untold)
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
