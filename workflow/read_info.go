package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Info reads the state of a run. It returns [ErrNotFound] if there is no such run.
func (r *Reader) Info(ctx context.Context, run pawl.ID) (Info, error) {
	row, err := r.row(ctx, run)
	if err != nil {
		return Info{}, err
	}
	info, err := r.look(ctx, run, row)
	if err == nil && info.Place != "" {
		err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
			info.Holders, err = rowsOf(tx).holders(row)
			return err
		})
	}
	return info, err
}

func (r *Reader) row(ctx context.Context, run pawl.ID) (row *runRow, err error) {
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		row, err = rowsOf(tx).mustRun(run)
		return err
	})
	return row, err
}

// look completes the state of a run whose row was read. The row does not say whether the job is
// active or dead, so look also reads the job. It uses a separate transaction: a transaction
// inside the first one could wait for a writer that waits for the first one.
func (r *Reader) look(ctx context.Context, run pawl.ID, row *runRow) (Info, error) {
	if !row.open() {
		return row.info(run), nil
	}
	row.Declared = openHub(r.source).declared(row)
	job, err := r.source.Job(ctx, run)
	lost := ""
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		lost = "its job is gone; Resume makes it anew"
	case errors.Is(err, pawl.ErrCorrupt):
		lost = fmt.Sprintf("its job cannot be read: %v; delete the job, then Resume makes it anew", err)
	case err != nil:
		return Info{}, err
	case job.State == pawl.Dead:
		lost = deathOf(job)
	case job.State == pawl.Completed:
		lost = "its job is completed and the run is not; delete the job, then Resume makes it anew"
	}
	if lost == "" {
		return row.openInfo(run, job), nil
	}
	// If its job is missing, the run may have ended since the row was read.
	if row, err = r.row(ctx, run); err != nil {
		return Info{}, err
	}
	info := row.info(run)
	if row.open() {
		info.Status, info.Error = Dead, lost
	}
	return info, nil
}

func deathOf(job *pawl.Envelope) string {
	reason, cause := pawl.Reason("unknown"), job.LastError()
	if job.Death != nil {
		reason = job.Death.Reason
	}
	if cause != "" {
		cause = ": " + cause
	}
	return fmt.Sprintf("its job is a dead letter (%s)%s; Resume brings it back", reason, cause)
}

// info returns what the row alone says.
func (row *runRow) info(run pawl.ID) Info {
	i := Info{
		Run: run, Flow: row.Flow, ID: row.ID, Key: row.Key, Attributes: row.attributes(), Status: row.Status, Queue: row.Queue, Build: row.Build,
		Created: timeOf(row.Created), Ended: timeOf(row.Ended), Retain: time.Duration(row.Retain),
		Unread: row.Unread, Steps: row.Steps, Bytes: row.Bytes, Restarts: row.Restarts, Error: row.Error,
		Parent: row.Parent, Forked: row.Forked, Declared: row.Declared, Deadline: timeOf(row.Deadline),
	}
	if row.open() {
		if i.Cancelling = row.Terminate; i.Cancelling == "" {
			i.Cancelling = row.Cancel
		}
	}
	return i
}

// openInfo is info for a run that has not ended and whose job is alive.
func (row *runRow) openInfo(run pawl.ID, job *pawl.Envelope) Info {
	i := row.info(run)
	switch {
	case row.Paused:
		i.Status = Paused
	case job.State == pawl.Ready, job.State == pawl.Leased:
		i.Status, i.Error = Running, ""
	}
	switch i.Status {
	case Sleeping, Waiting:
		i.Due = timeOf(row.Due)
		fallthrough
	case Paused: // time does not end a pause
		i.Waits = row.Waits
		i.Place, i.Rate = row.waitsToBegin()
	}
	if !job.BackoffSince.IsZero() && job.State == pawl.Delayed && i.Status != Paused { // its writes failed, or the worker declared it stuck
		i.Status, i.Due, i.Waits = Sleeping, job.NotBefore, nil
		i.Error = "its job is tried again: " + job.LastError()
	}
	return i
}
