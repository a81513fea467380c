package main

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// progressWidth is how much of a progress a list shows.
const progressWidth = 30

// progressOf returns the progress of the running jobs of a page, for people.
func (a *app) progressOf(ctx context.Context, queue admin.Admin, jobs []pawl.Listed) (map[pawl.ID]pawl.Progress, error) {
	if !a.people() {
		return nil, nil
	}
	var ids []pawl.ID
	for _, listed := range jobs {
		if listed.Err == nil && listed.Job.State == pawl.Leased {
			ids = append(ids, listed.Job.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := queue.Progress(ctx, ids...)
	if errors.As(err, new(*admin.UnsupportedError)) {
		return nil, nil // the engine stores no progress
	}
	progress := make(map[pawl.ID]pawl.Progress, len(all))
	for _, p := range all {
		progress[p.ID] = p.Progress
	}
	return progress, err
}

// showProgress prints the progress of a job, if it has reported some.
func (a *app) showProgress(ctx context.Context, queue admin.Admin, id pawl.ID) error {
	all, err := queue.Progress(ctx, id)
	if errors.As(err, new(*admin.UnsupportedError)) {
		return nil
	}
	for _, p := range all {
		a.fact("progress", "%s, %s", plain.Text(p.String()), relative(a.now(), p.At))
	}
	return err
}
