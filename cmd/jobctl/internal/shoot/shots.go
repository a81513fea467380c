package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/shoot/tmux"
)

// studio is where the pictures are made.
type studio struct {
	ctx         context.Context
	folder, out string
}

// longest is the maximum wait for anything on a screen.
const longest = 90 * time.Second

// terminal opens a terminal in the folder, with jobctl in its path.
func (s *studio) terminal(columns, rows int) (*tmux.Terminal, error) {
	t, err := tmux.Start(columns, rows, "PATH="+s.folder+":"+os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	if err = t.Type("cd '" + s.folder + "'; clear\n"); err == nil {
		err = s.wait(t, "an empty screen", func(screen string) bool { return strings.TrimSpace(screen) == "$" })
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (s *studio) wait(t *tmux.Terminal, what string, seen func(string) bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, longest)
	defer cancel()
	_, err := t.Wait(ctx, what, seen)
	return err
}

// save draws the current screen.
func (s *studio) save(t *tmux.Terminal, name, title string, columns int) error {
	screen, err := t.Colored()
	if err != nil {
		return err
	}
	path := filepath.Join(s.out, name+".svg")
	if err := os.WriteFile(path, picture(title, screen, columns), 0o644); err != nil {
		return err
	}
	fmt.Println("made", path)
	return nil
}

// live makes the picture of an app at work: steer, with a paused queue and jobs for later.
func (s *studio) live() (err error) {
	app := exec.Command(filepath.Join(s.folder, "steer"), "-db", "steer.db", "-rate", "40")
	app.Dir = s.folder
	if err := app.Start(); err != nil {
		return err
	}
	defer func() {
		_ = app.Process.Signal(os.Interrupt)
		_ = app.Wait() // its exit code reports that it was stopped
	}()
	const columns = 100
	t, err := s.terminal(columns, 20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()

	// Fifteen values of the trend take fifteen seconds of work.
	trend := regexp.MustCompile(`(?m)mail .*[▁▂▃▄▅▆▇█]{15}`)
	jobs := regexp.MustCompile(`── running 2 .*\n.* ATTEMPT .*\n.* 1 of .*\n.* [12] of (?s:.*)── dead .*\n.* REASON .*\n.* permanent `)
	overview := func(screen string) bool { return trend.MatchString(screen) && jobs.MatchString(screen) }
	pause := "for n in 1 2 3 4 5; do jobctl --db steer.db job enqueue invoice.close '{}' -q invoices --create-queue --delay 9h; done; jobctl --db steer.db -y queue pause invoices && echo a''ll\n"
	if err := t.Type(pause); err != nil {
		return err
	}
	if err := s.wait(t, "a queue that is paused", func(screen string) bool { return strings.Contains(screen, "\nall\n") }); err != nil {
		return err
	}
	if err := t.Type("clear; jobctl --db steer.db top\n"); err != nil {
		return err
	}
	if err := s.wait(t, "a trend, running jobs and dead jobs", overview); err != nil {
		return err
	}
	return s.save(t, "top", "jobctl top: queues, running jobs and dead jobs of an app at work", columns)
}

// manyJobs take a few seconds to copy.
const manyJobs = 600_000

// progress makes the picture of a bar, halfway through the compaction of a large file.
func (s *studio) progress() (err error) {
	if err := s.makeLarge(filepath.Join(s.folder, "large.db")); err != nil {
		return err
	}
	const columns = 100
	t, err := s.terminal(columns, 6)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Type("jobctl --db large.db db compact small.db\n"); err != nil {
		return err
	}
	half := regexp.MustCompile(` [4-8][0-9]% `)
	if err := s.wait(t, "a bar half way", half.MatchString); err != nil {
		return err
	}
	return s.save(t, "progress", "jobctl db compact: a progress bar", columns)
}

func (s *studio) makeLarge(path string) (err error) {
	q, err := bolt.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	for n := 0; n < manyJobs; n += pawl.MaxBatchJobs {
		batch := make([]*pawl.Envelope, pawl.MaxBatchJobs)
		for i := range batch {
			batch[i] = &pawl.Envelope{Kind: "thumbnail", Payload: []byte{0x81, 0xa2, 'i', 'd', 0x07}}
		}
		if _, err := q.Enqueue(s.ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}
