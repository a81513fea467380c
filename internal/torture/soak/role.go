package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// The lines of a process of a soak.
const (
	at    = "at"    // some events of a round with kills have passed
	ended = "ended" // a round is over without a violation; followed by the sample
	wrong = "wrong" // followed by a violation
)

// goOn is its input before each further round.
const goOn = "go"

// progressLines is the number of lines "at" during as many events as a round has jobs. A job
// has about three events.
const progressLines = 16

const roleName = "soak-work"

func init() { harness.Role(roleName, work) }

// orders are the arguments of a process.
type orders struct {
	path, ledger string
	size         int
	round        int // the first round
	kills        int // processes that were killed in the first round
}

func (o orders) args() []any { return []any{o.path, o.ledger, o.size, o.round, o.kills} }

// work is the role.
func work(args harness.Args) error {
	o := orders{args[0], args[1], args.Int(2), args.Int(3), args.Int(4)}
	if err := o.live(context.Background(), bufio.NewScanner(os.Stdin)); err != nil {
		harness.EmitError(wrong, err)
	}
	return nil
}

// live runs rounds until its input ends.
func (o orders) live(ctx context.Context, in *bufio.Scanner) (err error) {
	book, err := openLedger(o.ledger, o.size)
	if err != nil {
		return err
	}
	defer book.file.Close()
	l := &life{ledger: book, path: o.path, kills: o.kills}
	l.deadJobs.bell = make(chan struct{}, 1)
	if o.kills > 0 {
		err = book.resume(o.round)
	} else {
		err = book.begin(o.round, killed(o.round))
	}
	if err != nil {
		return err
	}
	harness.Emit(at)
	defer l.watch()()
	if err := l.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.rest(), l.q.Close()) }()
	if o.kills > 0 {
		if err := errors.Join(l.q.Check(ctx), l.findDeadJobs(ctx), l.cancelAgain(ctx)); err != nil {
			return err
		}
	}
	for {
		err := l.play(ctx)
		if err == nil {
			err = l.end(ctx)
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", l.round, err)
		}
		sample, err := l.sample(ctx)
		if err != nil {
			return err
		}
		harness.Emit(ended, sample)
		l.waiting.Store(true)
		if !in.Scan() || in.Text() != goOn {
			return in.Err()
		}
		l.waiting.Store(false)
		l.progress.Add(1)
		l.kills = 0
		err = book.begin(l.round+1, killed(l.round+1))
		if err == nil {
			err = l.q.Update(ctx, forgetEffects)
		}
		if err != nil {
			return err
		}
	}
}

// stuckAfter is the time without events after which a process is stuck. No job waits for more
// than some milliseconds.
const stuckAfter = time.Minute

// watch ends the process when it is stuck, until stop is called.
func (l *life) watch() (stop func()) {
	ended := make(chan struct{})
	go func() {
		look := time.NewTicker(stuckAfter / 10)
		defer look.Stop()
		last, since := int64(-1), time.Now()
		for {
			select {
			case <-ended:
				return
			case <-look.C:
			}
			switch now := l.progress.Load(); {
			case now != last:
				last, since = now, time.Now()
			case time.Since(since) > stuckAfter && !l.waiting.Load():
				harness.EmitError(wrong, l.stuck())
				os.Exit(1)
			}
		}
	}()
	return func() { close(ended) }
}

// stuck describes a queue without events.
func (l *life) stuck() error {
	if l.q == nil {
		return errors.New("there are no more events, and the queue is not open")
	}
	stats, err := l.q.Stats(context.Background())
	return fmt.Errorf("there are no more events, and the queue has %+v (%v)", stats.Queues, err)
}
