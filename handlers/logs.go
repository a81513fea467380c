package handlers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Logs keeps the output of commands as files, one a run, named after the job and the
// number of the run: 01890a5d-ac96-774b-bcce-b302099a8057.1.log. A run that was interrupted
// counts as none, so the next one replaces its file. Files are for their owner alone
// (mode 0600). They are no part of the queue: a crash can lose one.
type Logs struct {
	dir  string
	most int

	mu    sync.Mutex
	names []string // of the files there are, in the order of their jobs; guarded by mu
}

const (
	logSuffix  = ".log"
	tempPrefix = ".output-" // of a file that is not whole yet
)

// NewLogs keeps output in a folder of its own, which it makes if need be, and of most runs:
// those of the jobs that were made first are deleted for those that come. Give [Logs.Keep]
// to [ExecOptions].OnRun.
func NewLogs(dir string, most int) (*Logs, error) {
	if most < 1 {
		return nil, fmt.Errorf("keep output: of %d runs; name 1 or more", most)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	entries, err := os.ReadDir(dir) // sorted by name, thus by when the job was made
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	l := &Logs{dir: dir, most: most}
	for _, entry := range entries {
		switch {
		case !entry.Type().IsRegular():
		case strings.HasSuffix(entry.Name(), logSuffix):
			l.names = append(l.names, entry.Name())
		case strings.HasPrefix(entry.Name(), tempPrefix): // a crash has left it
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
	return l, nil
}

// Path is where the output of a run is kept, if it is.
func (l *Logs) Path(r Run) string { return filepath.Join(l.dir, logName(r)) }

// Keep stores the output of a run. It does what it can: a disk that takes no file does not
// make a job fail.
func (l *Logs) Keep(r Run) {
	name := logName(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := slices.BinarySearch(l.names, name)
	if !found {
		l.names = slices.Insert(l.names, at, name)
	}
	_ = replaceFile(filepath.Join(l.dir, name), r.Output)
	for len(l.names) > l.most {
		_ = os.Remove(filepath.Join(l.dir, l.names[0]))
		l.names = l.names[1:]
	}
}

func logName(r Run) string { return fmt.Sprintf("%s.%d%s", r.Job.ID, r.Attempt, logSuffix) }

// replaceFile writes a file whole or not at all, and through no link.
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
