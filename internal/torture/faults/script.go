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

// What a script notes.
const (
	openRefused  = "open refused"
	closeRefused = "close refused"
	backupDone   = "backup done"
	backupFailed = "backup refused"
	poisoned     = "poisoned"
)

const backupName = "copy.db"

// script is a fixed run of a queue in which one call may fail: it is created, used, grown,
// backed up, closed, opened again, used and closed.
type script struct {
	*user
	path string
}

func scriptRole(args harness.Args) error {
	defer watch()()
	s := &script{path: args[0], user: newUser(args.Uint(1))}
	s.open()
	s.use(20)
	s.try(func() error { return s.enqueue(16, 30_000) }) // which lets the file grow
	s.use(5)
	s.backUp()
	s.use(5)
	s.again()
	s.use(15)
	s.close()
	return nil
}

// open opens the queue. An open may fail; the next one may not, but for a disk that is still
// full.
func (s *script) open() {
	const most = 12 // more than calls that fail in a row
	for tries := range most {
		var err error
		if s.Queue, err = bolt.Open(s.path, options()); err == nil {
			return
		}
		harness.Tell(noteLine, openRefused)
		if tries > 0 && !errors.Is(err, bolt.ErrDisk) || tries == most-1 {
			violate("the file cannot be opened after an open has failed: %v", err)
			os.Exit(0)
		}
	}
}

// use does so many steps. When the queue is poisoned it goes the way back.
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

// wayBack is what to do with a queue that a sync has stopped: close it and open it again.
func (s *script) wayBack() {
	harness.Tell(noteLine, poisoned)
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
	tellFound(s.Queue)
}

func (s *script) close() {
	if err := s.Queue.Close(); err != nil {
		harness.Tell(noteLine, closeRefused)
	}
}

// backUp makes a copy, which appears or does not.
func (s *script) backUp() {
	path := filepath.Join(filepath.Dir(s.path), backupName)
	if err := s.Queue.Backup(background, path); err != nil {
		harness.Tell(noteLine, backupFailed)
		return
	}
	harness.Tell(noteLine, backupDone)
}
