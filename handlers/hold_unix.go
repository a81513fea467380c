//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gopawl/pawl"
)

// hold is the right to run a job: nothing of an earlier run of it is alive.
type hold struct {
	state *state
	id    pawl.ID
	path  string
	rec   record   // what its file says, or said if somebody has deleted it
	lock  *os.File // for the command; closed once that has it
}

// runVariable has, in the environment of a command, the name of its run.
const runVariable = "PAWL_RUN"

// mark is by what the command of the run is to be known: a variable of its environment.
func (h *hold) mark() string { return runVariable + "=" + h.rec.Run }

// begin ends what an earlier run of the job left, and notes the new one.
func (s *state) begin(ctx context.Context, id pawl.ID) (*hold, error) {
	s.mu.Lock()
	busy := s.running[id]
	s.running[id] = true
	s.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("job %s is running in this process already", id)
	}
	h := &hold{state: s, id: id, path: s.file(id)}
	if err := h.take(ctx); err != nil {
		h.leave()
		return nil, err
	}
	return h, nil
}

func (h *hold) take(ctx context.Context) (err error) {
	if _, err = h.state.endRun(ctx, h.id, startPatience); err != nil {
		return err
	}
	h.lock, err = openLocked(ctx, h.path, startPatience)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the state folder %s was deleted, so no run can be noted; start the worker anew: %w", h.state.dir, err)
	}
	if err != nil {
		return fmt.Errorf("note the run: %w", err)
	}
	h.rec.Run = rand.Text()
	if err = h.note(); err != nil { // as on a full disk
		h.lock.Close()
		_ = os.Remove(h.path)
	}
	return err
}

// started notes the first process of the run, and leaves the lock to it.
func (h *hold) started(pid int) error {
	defer h.lock.Close()
	h.rec.PID = pid
	h.rec.Start, h.rec.Boot = identify(pid)
	return h.note()
}

// note adds a line to the file that says what is known.
func (h *hold) note() error {
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err == nil {
		err = json.NewEncoder(f).Encode(h.rec)
		if closing := f.Close(); err == nil {
			err = closing
		}
	}
	if err != nil {
		return fmt.Errorf("note the run: %w", err)
	}
	return nil
}

// end forgets the run, once nothing of it is alive. What is left of one that will run again
// is looked for and ended; of another, only what keeps its lock.
func (h *hold) end(again bool) error {
	defer h.leave()
	h.lock.Close() // again, or for a command that never started
	if !again && !locked(h.path) {
		return os.Remove(h.path)
	}
	_, err := h.state.endAll(context.Background(), h.id, h.rec, h.state.patience)
	return err
}

func (h *hold) leave() {
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	delete(h.state.running, h.id)
}
