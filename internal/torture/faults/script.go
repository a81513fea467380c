package faults

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

func init() { harness.Role("faults-script", scriptRole) }

// The notes of a script.
const (
	openRefused  = "open refused"
	closeRefused = "close refused"
	backupDone   = "backup done"
	backupFailed = "backup refused"
	poisoned     = "poisoned"
)

const backupName = "copy.db"

// script is a fixed use of a queue in which one call may fail. It creates, uses, grows, backs
// up, closes, reopens, uses and closes the queue.
type script struct {
	*user
	path string
}

func scriptRole(args harness.Args) error {
	defer harness.EndAfter(childTimeout)()
	s := &script{path: args[0], user: newUser(args.Uint(1))}
	s.open()
	s.use(20)
	s.try(func() error { return s.enqueue(16, 30_000) }) // the file grows
	s.use(5)
	s.backUp()
	s.use(5)
	s.again()
	s.use(15)
	s.close()
	return nil
}

// open opens the queue. The first open may fail. The next one may fail only if the disk is
// still full.
func (s *script) open() {
	const most = 12 // more than the calls that fail in a row
	for tries := range most {
		var err error
		if s.Queue, err = bolt.Open(s.path, options()); err == nil {
			return
		}
		harness.Emit(noteLine, openRefused)
		if tries > 0 && !errors.Is(err, bolt.ErrDisk) || tries == most-1 {
			violate("cannot open the file after a failed open: %v", err)
			os.Exit(0)
		}
	}
}

// use does a number of steps. It reopens a poisoned queue.
func (s *script) use(steps int) {
	for range steps {
		s.try(s.step)
	}
}

func (s *script) try(do func() error) {
	_ = do()
	if s.ended {
		s.wayBack()
	}
}

// wayBack closes a queue that a failed sync has stopped, and opens it again.
func (s *script) wayBack() {
	harness.Emit(noteLine, poisoned)
	_ = s.enqueue(1, 0)
	_ = s.fetch(1)
	if len(s.held) > 0 {
		_ = s.settle(oracle.Verbs[0])
	}
	if _, err := s.Queue.Reap(background); !errors.Is(err, pawl.ErrPoisoned) {
		violate("a reap of a poisoned queue: %v", err)
	}
	s.again()
}

func (s *script) again() {
	s.close()
	s.held, s.ended = nil, false
	s.open()
	emitFound(s.Queue)
}

func (s *script) close() {
	if err := s.Queue.Close(); err != nil {
		harness.Emit(noteLine, closeRefused)
	}
}

// backUp makes a backup, which may fail.
func (s *script) backUp() {
	path := filepath.Join(filepath.Dir(s.path), backupName)
	if err := s.Queue.Backup(background, path); err != nil {
		harness.Emit(noteLine, backupFailed)
		return
	}
	harness.Emit(noteLine, backupDone)
}
