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

// hold is the right to run a job: nothing of its earlier attempt is alive.
type hold struct {
	state *state
	id    pawl.ID
	path  string
	rec   record   // the content of its file
	lock  *os.File // for the command; closed once the command has it
}

// runVariable is the environment variable that names an attempt.
const runVariable = "PAWL_RUN"

// mark returns the variable that identifies the processes of the attempt.
func (h *hold) mark() string { return runVariable + "=" + h.rec.Run }

// begin ends the remains of the job's earlier attempt and records the new one.
func (s *state) begin(ctx context.Context, id pawl.ID) (*hold, error) {
	s.mu.Lock()
	busy := s.running[id]
	s.running[id] = true
	s.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("job %s is already running in this process", id)
	}
	h := &hold{state: s, id: id, path: s.file(id)}
	if err := h.take(ctx); err != nil {
		h.leave()
		return nil, err
	}
	return h, nil
}

func (h *hold) take(ctx context.Context) (err error) {
	if _, err = h.state.endRun(ctx, h.id, startTimeout); err != nil {
		return err
	}
	h.lock, err = openLocked(ctx, h.path, startTimeout)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the state folder %s was deleted, so no run can be recorded; restart the worker: %w", h.state.dir, err)
	}
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	h.rec.Run = rand.Text()
	if err = h.note(); err != nil {
		h.lock.Close()
		_ = os.Remove(h.path)
	}
	return err
}

// started records the first process of the attempt, which now holds the lock.
func (h *hold) started(pid int) error {
	defer h.lock.Close()
	h.rec.PID = pid
	h.rec.Start, h.rec.Boot = identify(pid)
	return h.note()
}

// note appends the record to the file.
func (h *hold) note() error {
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err == nil {
		err = json.NewEncoder(f).Encode(h.rec)
		if closing := f.Close(); err == nil {
			err = closing
		}
	}
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return nil
}

// end forgets the attempt once nothing of it is alive. For a job that will run again it finds
// and kills what is left; otherwise only processes that hold the lock.
func (h *hold) end(again bool) error {
	defer h.leave()
	h.lock.Close() // closed before unless the command never started
	if !again && !locked(h.path) {
		return os.Remove(h.path)
	}
	_, err := h.state.endAll(context.Background(), h.id, h.rec, h.state.timeout)
	return err
}

func (h *hold) leave() {
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	delete(h.state.running, h.id)
}
