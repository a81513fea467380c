package power

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/torture/trace"
)

// story knows the lines until a crash, and judges the image after it.
type story interface {
	hear(line string) error
	judge(ctx context.Context, folder string, img image) error
}

// states is the story of a sequence: the digest of the file after each step.
type states struct {
	digests      map[int]string // digests after all steps, from the whole log
	steps        map[int]string
	copies       map[int]string // names of the copies, by step
	failing      bool           // the disk fails at some point
	acked, begun int
	made         map[int]bool // acknowledged copies
	fresh        map[int]bool // acknowledged copies without a check since
}

// newStates reads the states from a whole log. Two processes report the state of one step if
// the first was killed after it, and both report the same.
func newStates(l *trace.Log) (*states, error) {
	s := &states{
		digests: make(map[int]string), steps: make(map[int]string),
		copies: make(map[int]string), made: make(map[int]bool), fresh: make(map[int]bool),
	}
	for _, line := range l.Story(len(l.Events)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "state" {
			continue
		}
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, err
		}
		if was, ok := s.digests[n]; ok && was != words[2] {
			return nil, fmt.Errorf("after step %d the file was in state %s, and the next process found %s", n, was, words[2])
		}
		s.digests[n] = words[2]
	}
	return s, nil
}

func (s *states) hear(line string) error {
	words := strings.Fields(line)
	if len(words) < 2 {
		return fmt.Errorf("the story has the line %q", line)
	}
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return fmt.Errorf("the story has the line %q", line)
	}
	switch words[0] {
	case "copy":
		s.copies[n] = words[2]
	case "begin":
		s.begun, s.steps[n] = n, strings.Join(words[2:], " ")
	case "done":
		switch {
		case s.copies[n] != "":
			s.fresh[n], s.made[n] = true, true
		case !promises(s.steps[n]):
		default:
			s.acked = n
		}
	case "failed":
		if !s.failing {
			return fmt.Errorf("step %d (%s) failed, and the disk did not", n, s.steps[n])
		}
		delete(s.copies, n)
	case "pid", "state":
	default:
		return fmt.Errorf("the story has the line %q", line)
	}
	return nil
}

// promises reports whether a step promises that the file is durable. Other steps may succeed
// after a failed sync.
func promises(step string) bool { return step != "close" && step != "backup" && step != "compact" }

// allowed returns the digests that the file may have: after the last acknowledged step, and
// after each step that started later.
func (s *states) allowed() (digests []string) {
	for n := s.acked; n <= s.begun; n++ {
		if is, ok := s.digests[n]; ok {
			digests = append(digests, is)
		}
	}
	return digests
}

func (s *states) judge(_ context.Context, folder string, img image) error {
	is, err := put(folder, queueFile, img)
	if err != nil {
		return fmt.Errorf("%w; step %d is acknowledged, step %d (%s) is begun", err, s.acked, s.begun, s.steps[s.begun])
	}
	if !slices.Contains(s.allowed(), is) {
		return fmt.Errorf("the file is in the state %s; step %d is acknowledged, step %d (%s) is begun%s",
			is, s.acked, s.begun, s.steps[s.begun], s.at(is))
	}
	for n, name := range s.copies {
		if err := s.judgeCopy(folder, img, n, name); err != nil {
			return err
		}
	}
	return nil
}

// at names the step that left a state.
func (s *states) at(is string) string {
	for n := s.begun; n >= 0; n-- {
		if s.digests[n] == is {
			return fmt.Sprintf("; step %d left that state", n)
		}
	}
	return "; no step left that state"
}

// judgeCopy requires that a copy is complete or absent, and present once it was acknowledged.
// It checks a present copy only once.
func (s *states) judgeCopy(folder string, img image, n int, name string) error {
	if s.made[n] && !s.fresh[n] {
		return nil
	}
	is, err := put(folder, name, img)
	if err != nil {
		return fmt.Errorf("%s, of step %d: %w", name, n, err)
	}
	want, known := s.digests[n-1] // unknown after a failed sync
	if is == absent && s.made[n] || is != absent && is != want && known {
		return fmt.Errorf("%s, of step %d, is in the state %s, and the file was in %s", name, n, is, want)
	}
	if s.begun > n {
		delete(s.fresh, n)
	}
	return nil
}

// put writes or removes a file of an image, and inspects it. It returns a panic caused by
// damaged pages as an error, so that the caller can name the file.
func put(folder, name string, img image) (is string, err error) {
	path := filepath.Join(folder, name)
	c := img.names[name]
	if c == nil {
		return absent, os.RemoveAll(path)
	}
	if err := c.writeTo(path); err != nil {
		return "", err
	}
	err = harness.Guard(func() (err error) {
		is, err = inspect(path, true)
		return err
	})
	return is, err
}

// putBeside writes the files of an image that belong to the queue's file, and removes those of
// an earlier queue.
func putBeside(folder string, img image) error {
	left, err := filepath.Glob(filepath.Join(folder, queueFile+"-*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for name, c := range img.names {
		if !strings.HasPrefix(name, queueFile+"-") {
			continue
		}
		if err := c.writeTo(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// concurrentStory is the story of several goroutines. The oracle knows the possible states.
type concurrentStory struct {
	oracle oracle.Oracle
	up     bool
}

func (s *concurrentStory) hear(line string) error {
	if line == harness.Up {
		s.up = true
		return nil
	}
	return s.oracle.Hear(line)
}

func (s *concurrentStory) judge(ctx context.Context, folder string, img image) error {
	if _, err := put(folder, queueFile, img); err != nil {
		return err
	}
	return s.judgeFolder(ctx, folder)
}

// judgeFolder opens the queue in a folder and compares it with the story.
func (s *concurrentStory) judgeFolder(ctx context.Context, folder string) error {
	path := filepath.Join(folder, queueFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if s.up {
			return errors.New("the file is absent, though it was open")
		}
		return nil
	}
	return oracle.Reopen(ctx, path, oracle.Options(), func(_ *bolt.Queue, found map[pawl.ID]oracle.Known) error {
		return s.oracle.Explain(found)
	})
}
