package admin

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// JobProgress is the last progress that an attempt of a job noted.
type JobProgress struct {
	ID pawl.ID
	pawl.Progress
}

// mostLogs is more than a queue keeps of a job.
const mostLogs = 10

type progressRequest struct{ IDs []pawl.ID }

type progressAnswer struct{ Jobs []JobProgress }

var opProgress = define(operation[progressRequest, progressAnswer]{
	path: "jobs/progress",
	do: func(ctx context.Context, a Admin, r *progressRequest) (progressAnswer, error) {
		jobs, err := a.Progress(ctx, r.IDs...)
		return progressAnswer{jobs}, err
	},
	check: func(r *progressRequest, p *progressAnswer) error { return checkPage(len(p.Jobs), len(r.IDs), "", "") },
})

type logsAnswer struct{ Logs []pawl.RunLog }

var opLogs = define(operation[jobRequest, logsAnswer]{
	path: "jobs/logs", large: always[jobRequest],
	do: func(ctx context.Context, a Admin, r *jobRequest) (logsAnswer, error) {
		logs, err := a.Logs(ctx, r.ID)
		return logsAnswer{logs}, err
	},
	check: func(_ *jobRequest, l *logsAnswer) error {
		for i := range l.Logs {
			if l.Logs[i].Dropped < 0 {
				return errors.New("it left out a negative number of bytes")
			}
		}
		return checkPage(len(l.Logs), mostLogs, "", "")
	},
})

func (c *client) Progress(ctx context.Context, ids ...pawl.ID) ([]JobProgress, error) {
	p, err := ask(ctx, c, opProgress, progressRequest{ids})
	return p.Jobs, err
}

func (c *client) Logs(ctx context.Context, id pawl.ID) ([]pawl.RunLog, error) {
	l, err := ask(ctx, c, opLogs, jobRequest{id})
	return l.Logs, err
}

func (d direct) Progress(ctx context.Context, ids ...pawl.ID) (jobs []JobProgress, err error) {
	if len(ids) > MaxIDs {
		return nil, invalid("ids", "%d are given, at most %d are allowed", len(ids), MaxIDs)
	}
	store, err := d.notes()
	if err != nil {
		return nil, err
	}
	all, err := store.ReadProgress(ctx, ids...)
	for _, id := range ids {
		if p, ok := all[id]; ok {
			jobs = append(jobs, JobProgress{id, p})
		}
	}
	return jobs, err
}

func (d direct) Logs(ctx context.Context, id pawl.ID) (logs []pawl.RunLog, err error) {
	if _, err := d.q.Job(ctx, id); err != nil && !errors.Is(err, pawl.ErrCorrupt) {
		return nil, err
	}
	store, err := d.notes()
	if err != nil {
		return nil, err
	}
	return store.ReadLogs(ctx, id)
}

// notes returns the store of the notes of attempts.
func (d direct) notes() (driver.NoteStore, error) {
	if s := driver.NotesOf(d.q); s != nil {
		return s, nil
	}
	return nil, &UnsupportedError{"logs"}
}
