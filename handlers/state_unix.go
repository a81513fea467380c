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
	ownerFile = "owner" // locked by the runner that uses the folder
	runSuffix = ".run"  // an attempt's file is named after its job's ID

	pollEvery    = 5 * time.Millisecond   // interval for polling a lock
	ownerTimeout = time.Second            // for the folder's lock, which a dying process may still hold
	startTimeout = 5 * time.Second        // for ending an earlier attempt before the next one
	endTimeout   = 500 * time.Millisecond // for ending the rest of an attempt after it
)

// state is the folder in which a runner records what runs.
//
// An attempt has a file there, from before its command starts until nothing of it is alive. The
// command and everything it starts inherit a lock on the file (flock). The lock belongs to the
// open file description, so it is held while any of them lives and has it open, even after the
// worker has died. A crash leaves:
//
//   - before the command starts: a file that at most names the attempt, not locked
//   - before its process is recorded: a file that names the attempt, locked
//   - while it runs: a file that names the process, locked by its remaining processes
//   - after it ended: the same, not locked
//
// In each case the next runner on the folder, or the next attempt of the job, first ends what it
// finds.
type state struct {
	dir     string
	owner   *os.File
	timeout time.Duration // for ending the rest of an attempt

	mu      sync.Mutex
	running map[pawl.ID]bool // guarded by mu
}

// record is the content of an attempt's file: one line of JSON before the command starts, and
// one with its process after. Lines are only appended, so a crash keeps what was known.
type record struct {
	Run   string `json:"run,omitempty"`   // globally unique
	PID   int    `json:"pid,omitempty"`   // of the first process, its group and its session
	Start string `json:"start,omitempty"` // start time of that process, in the system's units
	Boot  string `json:"boot,omitempty"`  // the boot ID that Start refers to
}

// openState locks the folder and ends the attempts recorded there.
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
	s := &state{dir: dir, timeout: endTimeout, running: make(map[pawl.ID]bool)}
	if s.owner, err = openLocked(context.Background(), filepath.Join(dir, ownerFile), ownerTimeout); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another runner uses it; stop that one, or give each queue its own folder")
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

// private refuses a folder that others can write to or replace: its files decide which
// processes are killed.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("state folder %s belongs to user %d; use your own", dir, stat.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to the state folder %s and so choose which processes are killed; run chmod 700 on it", dir)
	}
	if err := refuseOpen(dir); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

func (s *state) close() error { return s.owner.Close() }

// endOrphans ends the remaining attempts of a dead worker. It reports those that it cannot end.
// The next attempts of their jobs try again.
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
		pids, err := s.endRun(context.Background(), id, startTimeout)
		if len(pids) > 0 || err != nil {
			found = append(found, Orphan{Job: id, PIDs: pids, Err: err})
		}
	}
	return found, nil
}

func (s *state) file(id pawl.ID) string { return filepath.Join(s.dir, id.String()+runSuffix) }

// endRun ends the rest of the attempt that a job's file names, if there is one, and returns
// the processes that it killed.
func (s *state) endRun(ctx context.Context, id pawl.ID, timeout time.Duration) (killed []int, err error) {
	text, err := os.ReadFile(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of a run: %w", err)
	}
	return s.endAll(ctx, id, parseRecord(text), timeout)
}

// endAll kills the processes of an attempt until none is left, removes its file, and returns
// the processes that it killed.
func (s *state) endAll(ctx context.Context, id pawl.ID, rec record, timeout time.Duration) (killed []int, err error) {
	path := s.file(id)
	expired := time.NewTimer(timeout)
	defer expired.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var left []survivor
	for {
		// A dying process has lost its environment but may still have files open.
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
				return killed, fmt.Errorf("remove the record of a run: %w", err)
			}
			return killed, nil
		}
		select {
		case <-tick.C:
		case <-expired.C:
			return killed, stillAlive(id, path, rec, left)
		case <-ctx.Done():
			return killed, fmt.Errorf("%w while ending an earlier run of the job", context.Cause(ctx))
		}
	}
}

// parseRecord reads the valid lines of a file.
func parseRecord(text []byte) (rec record) {
	lines := json.NewDecoder(bytes.NewReader(text))
	for lines.Decode(&rec) == nil {
		continue
	}
	return rec
}

// stillAlive returns the error for an attempt that cannot be ended.
func stillAlive(id pawl.ID, path string, rec record, left []survivor) error {
	who := "an unknown process"
	switch {
	case len(left) > 0:
		who = fmt.Sprintf("process %d", left[0].pid)
	case rec.PID > 0:
		who = fmt.Sprintf("a descendant of process %d", rec.PID)
	}
	return fmt.Errorf("an earlier run of job %s is alive: %s does not end or keeps %s open; find it with fuser or lsof and end it, then the job runs", id, who, path)
}
