//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gopawl/pawl"
)

const (
	ownerFile = "owner" // its lock says who has the folder
	runSuffix = ".run"  // of the file of a run: its job's ID, and this

	pollEvery     = 5 * time.Millisecond   // how often a lock is looked at that is waited for
	ownerPatience = time.Second            // for the lock of the folder, which a dying process may hold yet
	startPatience = 5 * time.Second        // for what an earlier run left, before the next one
	endPatience   = 500 * time.Millisecond // and after a run
)

// state is the folder in which a runner notes what runs.
//
// A run has a file there, from before its command starts until nothing of it is alive. The
// command inherits a lock on it (flock), and so does everything that the command starts: a
// lock of that kind belongs to the open file, so it is held while any of them lives and
// has not closed it, whatever becomes of the worker. The file says which process came
// first. What a crash leaves:
//
//   - before the command starts: a file that names the run at most, not locked
//   - before its process is noted: a file that names the run, locked
//   - while it runs: a file that names the process, locked by what is left of it
//   - after it ended: the same, not locked
//
// In each case the next runner on the folder, or the next run of the job, ends what it
// finds before it does anything else.
type state struct {
	dir      string
	owner    *os.File
	patience time.Duration // for what a run has left, after it

	mu      sync.Mutex
	running map[pawl.ID]bool // guarded by mu
}

// record is what the file of a run says: JSON, a line before the command is started and one
// with its process after it. Nothing is ever overwritten, so a crash leaves what is known.
type record struct {
	Run   string `json:"run,omitempty"`   // tells the run from all others, anywhere
	PID   int    `json:"pid,omitempty"`   // of the first process, and of its group and session
	Start string `json:"start,omitempty"` // when that started, as the system counts it
	Boot  string `json:"boot,omitempty"`  // which start of the system that belongs to
}

// openState takes the folder and ends what is noted there.
func openState(dir string) (*state, []Orphan, error) {
	if dir == "" {
		return nil, nil, errors.New("the state folder has no name; name one beside the queue's file")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("state folder: %w", err)
	}
	dir, err := folder(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("state folder: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, nil, err
	}
	s := &state{dir: dir, patience: endPatience, running: make(map[pawl.ID]bool)}
	if s.owner, err = openLocked(context.Background(), filepath.Join(dir, ownerFile), ownerPatience); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another runner has it; stop that one, or give each queue a folder of its own")
		}
		return nil, nil, fmt.Errorf("state folder %s: %w", dir, err)
	}
	orphans, err := s.endOrphans()
	if err != nil {
		s.close()
		return nil, nil, fmt.Errorf("state folder %s: %w", dir, err)
	}
	return s, orphans, nil
}

// private refuses a folder that others may write to, or could replace: what it says decides
// whom the runner kills.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("state folder %s belongs to user %d; use one of your own", dir, stat.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to the state folder %s, and so say which processes are killed; chmod 700 it", dir)
	}
	if err := refuseOpen(dir); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

func (s *state) close() error { return s.owner.Close() }

// endOrphans ends what runs of a worker that died have left. That some cannot be ended is
// told, and met again when their job comes.
func (s *state) endOrphans() (found []Orphan, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, isRun := strings.CutSuffix(entry.Name(), runSuffix)
		id, err := pawl.ParseID(name)
		if !isRun || err != nil {
			continue
		}
		pids, err := s.endRun(context.Background(), id, startPatience)
		if len(pids) > 0 || err != nil {
			found = append(found, Orphan{Job: id, PIDs: pids, Err: err})
		}
	}
	return found, nil
}

func (s *state) file(id pawl.ID) string { return filepath.Join(s.dir, id.String()+runSuffix) }

// endRun ends what is left of the run that a file names, and returns whom it killed. A file
// that is not there is no run.
func (s *state) endRun(ctx context.Context, id pawl.ID, patience time.Duration) (killed []int, err error) {
	text, err := os.ReadFile(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what runs: %w", err)
	}
	return s.endAll(ctx, id, parseRecord(text), patience)
}

// endAll kills what is left of a run until nothing is, removes its file, and returns whom it
// killed.
func (s *state) endAll(ctx context.Context, id pawl.ID, rec record, patience time.Duration) (killed []int, err error) {
	path := s.file(id)
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var left []survivor
	for {
		// One that is dying has no environment any more, but may have files open yet.
		left = slices.DeleteFunc(left, func(p survivor) bool { return !p.alive() })
		for _, p := range survivors(rec, path) {
			if !slices.Contains(left, p) {
				left = append(left, p)
			}
		}
		for _, p := range left {
			p.kill()
			if !slices.Contains(killed, p.pid) {
				killed = append(killed, p.pid)
			}
		}
		if len(left) == 0 && !locked(path) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return killed, fmt.Errorf("forget a run: %w", err)
			}
			return killed, nil
		}
		select {
		case <-tick.C:
		case <-giveUp.C:
			return killed, stillAlive(id, path, rec, left)
		case <-ctx.Done():
			return killed, fmt.Errorf("%w, while an earlier run of the job was being ended", context.Cause(ctx))
		}
	}
}

// parseRecord reads as much of a file as a crash has left.
func parseRecord(text []byte) (rec record) {
	lines := json.NewDecoder(bytes.NewReader(text))
	for lines.Decode(&rec) == nil {
		continue
	}
	return rec
}

// stillAlive says what to do about what cannot be killed.
func stillAlive(id pawl.ID, path string, rec record, left []survivor) error {
	who := "a process that cannot be found"
	switch {
	case len(left) > 0:
		who = fmt.Sprintf("process %d", left[0].pid)
	case rec.PID > 0:
		who = fmt.Sprintf("a process that began with process %d", rec.PID)
	}
	return fmt.Errorf("an earlier run of job %s is alive: %s does not end, or keeps %s open; end it by hand (fuser, lsof), the job then runs", id, who, path)
}
