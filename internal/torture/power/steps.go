package power

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

const queueFile = "jobs.db"

func init() {
	harness.Role("power-steps", stepsRole)
	harness.Role("power-concurrent", concurrentRole)
}

// A flavour is the main activity of a process.
type flavour string

const (
	plain      flavour = "plain"
	reopens    flavour = "reopens"    // closes the queue and opens it again and again
	large      flavour = "large"      // payloads of many pages: the file grows
	copies     flavour = "copies"     // backups and compactions
	inTx       flavour = "tx"         // the app's own transactions
	killed     flavour = "killed"     // is killed, and another process continues
	concurrent flavour = "concurrent" // several goroutines, so commits of many calls
	stores     flavour = "stores"     // like concurrent, with many enqueues
)

// endWithInput ends the process when its family ends.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// sequence does one step after another, and reports the digest of all rows after each. So it is
// always known which one or two states the file may have.
//
//	begin n what      a step starts
//	done n            it was acknowledged
//	failed n          it failed
//	state n digest    the file after it
//	copy n name       step n makes a copy with that name
type sequence struct {
	ctx     context.Context
	folder  string
	flavour flavour
	rand    *rand.Rand
	q       *bolt.Queue
	n       int
	leases  []*pawl.Lease
	dead    []pawl.ID
	closed  bool
}

// stepsRole takes the folder, a seed, the flavour, the number of steps, and the number of
// steps of earlier processes.
func stepsRole(args harness.Args) error {
	go endWithInput()
	before := args.Int(4)
	s := &sequence{
		ctx: context.Background(), folder: args[0], flavour: flavour(args[2]),
		rand: rand.New(rand.NewPCG(args.Uint(1), uint64(before))), n: before,
	}
	harness.Emit("pid", os.Getpid())
	return s.run(args.Int(3))
}

func (s *sequence) path() string { return filepath.Join(s.folder, queueFile) }

func (s *sequence) run(many int) error {
	is, err := inspect(s.path(), false)
	if err != nil {
		return err
	}
	harness.Emit("state", s.n, is)
	var failed failedStep
	begin := func() error { return s.step("open", s.open) }
	if is == absent {
		begin = s.create
	}
	if err := begin(); errors.As(err, &failed) {
		return nil
	} else if err != nil {
		return err
	}
	failures := 0
	for range many {
		before := s.n
		err := s.any()
		switch {
		case err == nil:
		case !errors.As(err, &failed):
			return fmt.Errorf("step %d: %w", before+1, err)
		case s.closed: // the open failed
			return nil
		case failures == 3: // that suffices to show that it does not continue
			return s.step("close", s.close)
		default:
			failures++
		}
	}
	return s.step("close", s.close)
}

// failedStep is the error of a step on a failing disk. Only families with such a disk accept
// it.
type failedStep struct{ error }

func (s *sequence) step(what string, do func() error) error {
	s.n++
	harness.Emit("begin", s.n, what)
	if err := do(); err != nil {
		if !byDisk(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		harness.Emit("failed", s.n)
		return failedStep{err}
	}
	harness.Emit("done", s.n)
	return s.state()
}

// byDisk reports whether an error comes from a failing disk.
func byDisk(err error) bool {
	if err == nil {
		return false
	}
	var p *os.PathError
	if strings.Contains(err.Error(), "file sync error") { // the error of bbolt when it grows a file
		return true
	}
	return errors.Is(err, pawl.ErrUnknownOutcome) || errors.Is(err, pawl.ErrPoisoned) || errors.Is(err, bolt.ErrDisk) ||
		errors.Is(err, errIO) || errors.As(err, &p) && p.Op == "sync"
}

// state reports the digest of the file.
func (s *sequence) state() (err error) {
	is := ""
	if s.closed {
		is, err = inspect(s.path(), false)
	} else {
		err = s.q.View(s.ctx, func(tx *bbolt.Tx) (err error) {
			is, err = digestOf(tx)
			return err
		})
	}
	if err != nil {
		return err
	}
	harness.Emit("state", s.n, is)
	return nil
}

// create makes a file without limits. The next open declares them, in a separate commit.
func (s *sequence) create() error {
	err := s.step("create", func() error {
		o := oracle.Options()
		o.Limits = nil
		return s.openWith(o)
	})
	if err != nil {
		return err
	}
	return s.reopen()
}

func (s *sequence) open() error { return s.openWith(oracle.Options()) }

func (s *sequence) openWith(o *bolt.Options) (err error) {
	s.q, err = bolt.Open(s.path(), o)
	s.closed = err != nil
	return err
}

func (s *sequence) close() error {
	s.closed, s.leases = true, nil
	return s.q.Close()
}

// chance is a step and its weight by flavour. The empty flavour stands for all other flavours.
type chance struct {
	take  func(*sequence) error
	often map[flavour]int
}

var chances = []chance{
	{(*sequence).enqueue, map[flavour]int{"": 8}},
	{(*sequence).enqueueLarge, map[flavour]int{large: 4}},
	{(*sequence).fetch, map[flavour]int{"": 5}},
	{(*sequence).settle, map[flavour]int{"": 8}},
	{(*sequence).manage, map[flavour]int{"": 2}},
	{(*sequence).transaction, map[flavour]int{inTx: 12, plain: 1}},
	{(*sequence).reopen, map[flavour]int{reopens: 6, large: 1, inTx: 1}},
	{(*sequence).copy, map[flavour]int{copies: 3}},
}

func (s *sequence) any() error {
	return harness.Pick(s.rand, chances, func(c chance) int {
		if n, ok := c.often[s.flavour]; ok {
			return n
		}
		return c.often[""]
	}).take(s)
}

// concurrentRole uses a queue with several goroutines. It takes the folder, a seed, the
// flavour and the number of lines of its story.
func concurrentRole(args harness.Args) error {
	go endWithInput()
	q, err := bolt.Open(filepath.Join(args[0], queueFile), oracle.Options())
	if byDisk(err) {
		return nil // a process without a story has promised nothing
	}
	if err != nil {
		return err
	}
	harness.Emit(harness.Up)
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	w := oracle.AnyWorkload(args.Uint(1))
	if flavour(args[2]) == stores {
		w.Producers, w.Consumers = 8, 1
	}
	err = w.Run(ctx, q, oracle.After(args.Int(3), harness.Emit, enough))
	return errors.Join(err, q.Close())
}
