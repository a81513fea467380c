package handlers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Logs keeps the output of commands, one file per attempt, named after the job and the number of
// the attempt: 01890a5d-ac96-774b-bcce-b302099a8057.1.log. An interrupted attempt does not count,
// so the next one replaces its file. Files have mode 0600. They are not part of the queue: a crash
// can lose one.
type Logs struct {
	dir  string
	keep int // attempts

	mu    sync.Mutex
	names []string // existing files, in the order of their jobs; guarded by mu
}

const (
	logSuffix  = ".log"
	tempPrefix = ".output-" // of an unfinished file
)

// NewLogs keeps the output of up to keep attempts in a folder of its own, which it creates
// if needed. The oldest jobs' files are deleted first. Pass [Logs.Keep] as [ExecOptions].OnRun.
func NewLogs(dir string, keep int) (*Logs, error) {
	if keep < 1 {
		return nil, fmt.Errorf("keep output: %d runs; keep at least 1", keep)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	entries, err := os.ReadDir(dir) // sorted by name, and so by the creation time of the job
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	l := &Logs{dir: dir, keep: keep}
	for _, entry := range entries {
		switch {
		case !entry.Type().IsRegular():
		case strings.HasSuffix(entry.Name(), logSuffix):
			l.names = append(l.names, entry.Name())
		case strings.HasPrefix(entry.Name(), tempPrefix): // left by a crash
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
	return l, nil
}

// Path returns the path of the file for the output of an attempt. The file may not exist.
func (l *Logs) Path(r Run) string { return filepath.Join(l.dir, logName(r)) }

// Keep stores the output of an attempt. It ignores errors: a full disk does not fail a job.
func (l *Logs) Keep(r Run) {
	name := logName(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := slices.BinarySearch(l.names, name)
	if !found {
		l.names = slices.Insert(l.names, at, name)
	}
	_ = replaceFile(filepath.Join(l.dir, name), r.Output)
	for len(l.names) > l.keep {
		_ = os.Remove(filepath.Join(l.dir, l.names[0]))
		l.names = l.names[1:]
	}
}

func logName(r Run) string { return fmt.Sprintf("%s.%d%s", r.Job.ID, r.Attempt, logSuffix) }

// replaceFile writes a file atomically and follows no link.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
