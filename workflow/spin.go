package workflow

import (
	"errors"
	"fmt"
	"runtime"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// A function whose run does not go on now is told so by each of its calls, and returns. One that
// swallows that error in a loop would go on for ever. So calls that are refused are counted, for
// each scope, and behind one more than a journal has room for the goroutine that makes the next
// is ended: by runtime.Goexit, which no recover of the app's catches, and which in a goroutine of
// the app's own does not end the process as a panic would. The run is blocked.

// errSpins stops a run whose function does not return.
var errSpins = fmt.Errorf("its function has made more than %d calls after one had told it that the run does not go on: "+
	"it swallows the error in a loop; return the error of a call that is not a *StepError, and what blocks the run is gone", MaxEntries)

// refuse counts a call that is not made because the run, or its scope, does not go on now. The
// caller holds the lock.
func (s *scope) refuse(err error) error {
	s.refusals++
	return err
}

// spin ends the goroutine of a function that has been refused too many calls. It is called
// before a call, without the lock.
func (s *scope) spin() {
	x := s.x
	x.mu.Lock()
	over := s.refusals > MaxEntries
	if over {
		x.spins = true
		_ = x.stopLocked(errSpins) // unless it was stopped before
	}
	x.mu.Unlock()
	if over {
		runtime.Goexit()
	}
}

// spun reports whether spin has ended a goroutine.
func (x *execution) spun() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.spins
}

// blockLate is the rider that blocks a run which is suspended already: no lease holds its job.
type blockLate struct {
	x   *execution
	row *runRow // nil when somebody has had it go on meanwhile
}

// blockLate has a run that is suspended, and whose function did not return then, wait for
// another build. Its job is due as it was; see blockedEarlier.
func (x *execution) blockLate() error {
	b := &blockLate{x: x}
	err := x.engine.queue.Join(x.writing(), b, requestBytes)
	if b.row != nil || err != nil {
		x.logBlocked(errSpins)
	}
	return err
}

// Check looks whether the run is suspended still.
func (b *blockLate) Check(p *bolt.Plan) error {
	b.row = nil
	row, err := rowsOf(p.Tx()).run(b.x.run)
	if row == nil || err != nil {
		return err
	}
	state, err := p.State(b.x.run)
	if err != nil || state != pawl.Delayed || row.Paused || row.Status != Sleeping && row.Status != Waiting {
		return err
	}
	b.row = row
	row.Status, row.Error, row.Build, row.Waits = Blocked, textOf(errSpins), b.x.engine.opts.Build, nil
	return nil
}

// Apply says so in the rows.
func (b *blockLate) Apply(tx *bbolt.Tx) error {
	if b.row == nil {
		return nil
	}
	r := rowsOf(tx)
	if err := r.put(bucketBlocked, b.x.run[:], []byte(b.row.Build)); err != nil {
		return err
	}
	return r.putRun(b.x.run, b.row)
}

// blockedEarlier reports whether the run is blocked, and its job came back only because the time
// was over that it had waited for before.
func (x *execution) blockedEarlier() error {
	if x.row.Status == Blocked && x.row.Due != 0 && x.row.Build == x.engine.opts.Build && x.row.Due <= x.engine.now().UnixNano() {
		return errors.New(x.row.Error)
	}
	return nil
}
