package main

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// progressWidth is how much of a progress a list shows.
const progressWidth = 30

// progressOf returns the progress of those of the jobs that have noted some.
func progressOf(ctx context.Context, queue admin.Admin, ids ...pawl.ID) (map[pawl.ID]pawl.Progress, error) {
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

// leasedOf returns the IDs of the running jobs of a page, of which a list for people shows the progress.
func leasedOf(jobs []pawl.Listed) (ids []pawl.ID) {
	for _, listed := range jobs {
		if listed.Err == nil && listed.Job.State == pawl.Leased {
			ids = append(ids, listed.Job.ID)
		}
	}
	return ids
}

// jobView is one job in JSON.
type jobView struct {
	admin.Job
	Progress *progressView `json:"progress"`
}

type progressView struct {
	Done  int64       `json:"done"`
	Total int64       `json:"total"`
	Text  admin.Text  `json:"text"`
	At    admin.Stamp `json:"at"`
}
