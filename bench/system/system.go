// Package system has the queues that are compared, behind one small interface.
package system

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Queue is an open queue under test.
type Queue interface {
	// Enqueue stores one job. When it returns the job is as safe as the durability of
	// the system says. Many goroutines call it at a time.
	Enqueue(ctx context.Context, payload []byte) error

	// EnqueueAll stores many jobs, as fast as the system can.
	EnqueueAll(ctx context.Context, payloads [][]byte) error

	// Work runs handle for each job, in so many workers, until ctx ends. A job is done
	// when handle returns. Work returns after the last handler and the queue's own
	// bookkeeping, nil when ctx ended it.
	Work(ctx context.Context, workers int, handle func(payload []byte)) error

	Close() error
}

// Synced is the durability of a system whose enqueue returns only when the job was
// synced to the disk, and whose finished jobs are synced too.
const Synced = "synced"

// System is one way to set up a queue.
type System struct {
	Name       string // short, unique, as in "goqite" or "asynq-everysec"
	Durability string // Synced, or in a few words what it is instead
	Settings   string // how it was set up, for the report: pragmas, poll intervals, pool sizes
	Version    string // of the library, and of the server if it has one

	// Service names the server. Systems with the same one share it. Empty: the system has
	// its own.
	Service string

	// Start brings up a server with its data in dir, nil where there is none to start.
	// The error matches ErrAbsent when its program is not installed.
	Start func(ctx context.Context, dir string) (*Server, error)

	// Open returns an empty queue: in dir, an empty folder, or in the server that was
	// started, which is nil where there is none.
	Open func(ctx context.Context, dir string, server *Server) (Queue, error)

	// Join opens the queue with the jobs that it has, as a process beside the one that
	// opened it; nil where only one process can.
	Join func(ctx context.Context, dir string, server *Server) (Queue, error)
}

// Server is a program that this process started.
type Server struct {
	Addr    string       // where it listens, on loopback
	Version string       // as the program says
	Stop    func() error // ends it, by its process ID, and waits for its end

	// Usage is what the server has used since its start; nil where that is not known.
	Usage func(context.Context) (Usage, error)
}

// Usage is what a server has used.
type Usage struct {
	CPU time.Duration // of all its processes
	Log int64         // bytes of its write-ahead log; 0 where that is not known
}

// Sub returns what was used since an earlier time.
func (u Usage) Sub(earlier Usage) Usage { return Usage{u.CPU - earlier.CPU, u.Log - earlier.Log} }

// ErrAbsent says that a program is not installed on this machine.
var ErrAbsent = errors.New("not installed")

func absent(program, hint string) error {
	return fmt.Errorf("%w: %s (%s)", ErrAbsent, program, hint)
}
