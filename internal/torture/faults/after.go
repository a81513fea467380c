package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// childReport is the story of a child and its other lines.
type childReport struct {
	oracle oracle.Oracle
	found  map[pawl.ID]oracle.Known // the jobs of a reopened file so far
	notes  map[string]int
}

// hear processes the lines of a child and returns its violations.
func (h *childReport) hear(lines []string) error {
	if h.notes == nil {
		h.notes = make(map[string]int)
		h.found = make(map[pawl.ID]oracle.Known)
	}
	var wrong []error
	for _, line := range lines {
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case violationLine:
			wrong = append(wrong, errors.New(rest))
		case noteLine:
			h.notes[rest]++
		case foundLine:
			if err := h.find(rest); err != nil {
				return err
			}
		case openLine:
			wrong = append(wrong, h.oracle.Explain(h.found))
			h.oracle.Adopt(h.found)
			h.found = make(map[pawl.ID]oracle.Known)
		default:
			wrong = append(wrong, h.oracle.Hear(line))
		}
	}
	return errors.Join(wrong...)
}

// emitFound reports all jobs of a reopened queue.
func emitFound(q *bolt.Queue) {
	found, err := oracle.Scan(background, q)
	if err != nil {
		violate("the reopened file: %v", err)
	}
	for id, k := range found {
		harness.Emit(foundLine, id, k.State, k.Attempts, k.Crashes, k.Holds)
	}
	harness.Emit(openLine)
}

func (h *childReport) find(rest string) error {
	words := strings.Fields(rest)
	if len(words) != 5 {
		return fmt.Errorf("the child reported the job %q", rest)
	}
	id, err := pawl.ParseID(words[0])
	attempts, err2 := strconv.Atoi(words[2])
	crashes, err3 := strconv.Atoi(words[3])
	h.found[id] = oracle.Known{State: pawl.State(words[1]), Attempts: attempts, Crashes: crashes, Holds: words[4] == "true"}
	return errors.Join(err, err2, err3)
}

// check opens a file without faults, compares it with the story, and stores a job.
func (h *childReport) check(ctx context.Context, path string) error {
	return oracle.Reopen(ctx, path, options(), func(q *bolt.Queue, found map[pawl.ID]oracle.Known) error {
		if err := h.oracle.Explain(found); err != nil {
			return err
		}
		return withid.Enqueue(ctx, q, oracle.JobOf(pawl.ID{1}))
	})
}

// checkBackup requires that a copy is complete, and that it exists if and only if the
// child reported it.
func (h *childReport) checkBackup(ctx context.Context, path string, a at) error {
	there := exists(path)
	switch {
	case h.notes[backupDone] > 0 && !there:
		return errors.New("the backup succeeded, and the file is absent")
	case h.notes[backupFailed] > 0 && there && a.kind != "unlinkat":
		return errors.New("the backup failed, and the file exists")
	case !there:
		return nil
	}
	if err := oracle.Reopen(ctx, path, options(), func(*bolt.Queue, map[pawl.ID]oracle.Known) error { return nil }); err != nil {
		return fmt.Errorf("the backup: %w", err)
	}
	return nil
}

// leftovers returns the temporary files in a folder.
func leftovers(folder string) []string {
	names, _ := filepath.Glob(filepath.Join(folder, ".pawl-new-*"))
	return names
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
