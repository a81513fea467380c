package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// plan describes the run; it is stored in the state folder.
type plan struct {
	Root       string   // the folder, as given
	Complete   bool     // every file was enqueued
	Files      int      // number of files
	Unreadable []string // folders that could not be listed
}

func (r *runner) planPath() string { return filepath.Join(r.state, "plan.json") }

// loadPlan reads the plan of an earlier run, or creates one.
func (r *runner) loadPlan() (*plan, error) {
	b, err := os.ReadFile(r.planPath())
	if errors.Is(err, fs.ErrNotExist) {
		p := &plan{Root: r.root}
		return p, r.savePlan(p)
	}
	if err != nil {
		return nil, err
	}
	p := new(plan)
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", r.planPath(), err)
	}
	if p.Root != r.root {
		return nil, fmt.Errorf("the state in %s is for folder %q, not %q; use another -state", r.state, p.Root, r.root)
	}
	return p, nil
}

func (r *runner) savePlan(p *plan) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(r.planPath(), append(b, '\n'))
}

// enqueueAll enqueues a job for every regular file, in batches, and marks the plan as complete. After
// a kill it adds only the files that have neither a job nor a sum.
func (r *runner) enqueueAll(ctx context.Context, q *bolt.Queue, p *plan, sums *sums) error {
	known := make(map[string]bool)
	for path := range sums.byPath {
		known[path] = true
	}
	for job, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return err
		}
		file, err := sumFile.Job(job)
		if err != nil {
			return err
		}
		known[file.Args.Path] = true
	}
	p.Files, p.Unreadable = 0, nil
	var batch []*pawl.Envelope
	err := r.walk(p, func(path string) error {
		p.Files++
		if known[path] {
			return nil
		}
		e, err := sumFile.Envelope(File{path})
		if err != nil {
			return err
		}
		if batch = append(batch, e); len(batch) < 1000 {
			return nil
		}
		_, err = q.Enqueue(ctx, batch...)
		batch = batch[:0]
		return err
	})
	if err != nil {
		return err
	}
	if _, err := q.Enqueue(ctx, batch...); err != nil {
		return err
	}
	p.Complete = true
	return r.savePlan(p)
}

// walk calls fn for each regular file below the root, except in the state folder.
func (r *runner) walk(p *plan, fn func(path string) error) error {
	state, err := os.Stat(r.state)
	if err != nil {
		return err
	}
	return filepath.WalkDir(r.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			p.Unreadable = append(p.Unreadable, err.Error())
			return nil
		}
		if entry.IsDir() {
			if info, err := entry.Info(); err == nil && os.SameFile(info, state) {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return fn(r.manifestName(path))
	})
}

// manifestName returns a path as find prints it: the root as given, a slash, the rest.
func (r *runner) manifestName(path string) string {
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return path
	}
	return strings.TrimRight(r.root, "/") + "/" + filepath.ToSlash(rel)
}
