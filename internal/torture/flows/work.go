package flows

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// work is the role of a process that runs workflows until a kill, or until all have ended.
func work(args harness.Args) error {
	q, err := bolt.Open(args[0], oracle.Options())
	if err != nil {
		return err
	}
	harness.Emit(harness.Up)
	e := workflow.Open(q, &workflow.Options{Build: "1", Logger: hclog.NewNullLogger(), Middleware: []workflow.Middleware{counting},
		Warm: [...]int{-1, 1, workflow.DefaultWarm}[rand.IntN(3)]})
	w := worker.New(q, &worker.Options{Concurrency: 4, Logger: hclog.NewNullLogger()})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := e.Handle(ctx, w, program); err != nil {
		return err
	}
	var working sync.WaitGroup
	working.Go(func() {
		if err := w.Run(ctx); err != nil {
			harness.Emit("wrong", "worker:", err)
		}
	})
	p := &process{engine: e, seed: args.Uint(1)}
	if args[2] == toTheEnd {
		err = p.end(ctx, q)
	} else {
		err = p.use(ctx)
	}
	stop()
	working.Wait()
	return errors.Join(err, q.Close())
}

// process is the activity of a process besides its worker.
type process struct {
	engine *workflow.Engine
	seed   uint64
	sent   atomic.Uint64
}

// use starts and steers runs without end.
func (p *process) use(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make(chan error, 4)
	for i := range 2 {
		all.Go(func() { errs <- p.start(ctx, rand.New(rand.NewPCG(p.seed, uint64(i)))) })
	}
	for i := range 2 {
		all.Go(func() { errs <- p.steer(ctx, rand.New(rand.NewPCG(p.seed, uint64(10+i)))) })
	}
	all.Wait()
	close(errs)
	var joined error
	for err := range errs {
		joined = errors.Join(joined, err)
	}
	return joined
}

// names is the number of IDs, small enough that some start twice.
const names = 40

func (p *process) start(ctx context.Context, r *rand.Rand) error {
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		n := r.Uint64N(names)
		h, err := program.Start(ctx, p.engine, fmt.Sprint(n), Plan{Seed: n * 7919, Depth: 2})
		if err != nil {
			return fmt.Errorf("start %d: %w", n, err)
		}
		harness.Emit("started", h.Run(), n)
		go func() {
			v, err := h.Result(ctx)
			var failed *workflow.RunError
			switch {
			case err == nil:
				harness.Emit("result", h.Run(), workflow.Done, v)
			case errors.As(err, &failed):
				harness.Emit("result", h.Run(), failed.Status, 0)
			}
		}()
	}
}

// steer carries out operations of operators on runs.
func (p *process) steer(ctx context.Context, r *rand.Rand) error {
	for tick := time.NewTicker(7 * time.Millisecond); ; <-tick.C {
		list, err := p.engine.List(ctx, workflow.Filter{}, "", 500)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if len(list.Runs) == 0 {
			continue
		}
		i := list.Runs[r.IntN(len(list.Runs))]
		switch r.IntN(12) {
		case 0:
			err = p.engine.Cancel(ctx, i.Run, "for the test")
		case 1:
			err = p.engine.Terminate(ctx, i.Run, "for the test")
		case 2:
			err = p.engine.Pause(ctx, i.Run)
		case 3, 4, 5:
			err = p.engine.Resume(ctx, i.Run)
		case 6:
			_, err = p.engine.Fork(ctx, i.Run, "", fmt.Sprintf("%s+%d", i.ID, r.IntN(3)))
		default:
			err = p.send(ctx, i.Run)
		}
		if err != nil && !allowed(err) {
			return fmt.Errorf("steer run %s: %w", i.Run, err)
		}
	}
}

// allowed reports whether an operation on a random run may fail with an error.
func allowed(err error) bool {
	for _, ok := range []error{workflow.ErrNotRunning, workflow.ErrNotFound, workflow.ErrConflict, pawl.ErrConflict, pawl.ErrInvalid} {
		if errors.Is(err, ok) {
			return true
		}
	}
	return false
}

// send sends a unique signal.
func (p *process) send(ctx context.Context, run pawl.ID) error {
	text := fmt.Sprintf("%x-%d", p.seed, p.sent.Add(1))
	err := goOn.Send(ctx, p.engine, run, text, text)
	if err == nil {
		harness.Emit("sent", run, text)
	}
	return err
}

// stall is the time limit without an event while runs are open. No run waits for more than
// half a second, but the machine may be busy.
const stall = 30 * time.Second

// end continues all runs until they have ended.
func (p *process) end(ctx context.Context, q *bolt.Queue) error {
	var events atomic.Int64
	defer q.Listen(func(pawl.Event) { events.Add(1) })()
	seen, moved := int64(0), time.Now()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if now := events.Load(); now != seen {
			seen, moved = now, time.Now()
		} else if time.Since(moved) > stall {
			return errors.New("runs are open without an event")
		}
		open := 0
		err := eachRun(ctx, p.engine, func(i workflow.Info) error {
			if i.Status.Ended() {
				return nil
			}
			open++
			switch i.Status {
			case workflow.Blocked, workflow.Dead:
				harness.Emit("wrong", i.Flow, i.ID, i.Run, "is", i.Status, i.Error)
				fallthrough
			case workflow.Paused:
				if err := p.engine.Resume(ctx, i.Run); err != nil && !allowed(err) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if open == 0 {
			return nil
		}
	}
}
