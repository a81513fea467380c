package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Editor is a [Store] that can replace the payload of a job, such as *bolt.Queue and *memory.Queue.
type Editor interface {
	// Edit replaces the payload of a job that waits or is dead, in one transaction, if the job meets the
	// condition. A dead job becomes ready.
	Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error
}

// HeaderEdits is the header of a job that was edited, which names its earlier payloads; see [EditsOf].
const HeaderEdits = driver.HeaderEdits

// PastPayload is a payload that a job had before somebody replaced it.
type PastPayload = driver.PastPayload

// EditsOf returns the earlier payloads of a job, oldest first: the last 16, fewer if its headers have no room.
func EditsOf(e *pawl.Envelope) []PastPayload { return driver.EditsOf(e) }

// SumOf returns the SHA-256 of a payload in hex, for [Edit].
func SumOf(payload []byte) string { return driver.SumOf(payload) }

var opEdit, opTryEdit = defineTried("jobs/edit", "jobs/try-edit", "a job", func(e *Edit) bool { return e.DryRun }, operation[Edit, Edited]{
	do: func(ctx context.Context, a Admin, e *Edit) (Edited, error) { return a.Edit(ctx, *e) },
})

func (c *client) Edit(ctx context.Context, e Edit) (Edited, error) {
	o := opEdit
	if e.DryRun {
		o = opTryEdit
	}
	return ask(ctx, c, o, e)
}

func (d direct) Edit(ctx context.Context, e Edit) (done Edited, err error) {
	q, err := optional[Editor](d.q, "edits of jobs")
	if err != nil {
		return done, err
	}
	job, err := d.q.Job(ctx, e.ID)
	if err != nil {
		return done, err
	}
	if strings.HasPrefix(job.Kind, workflow.KindPrefix) {
		return done, fmt.Errorf("job %s: %w: its payload belongs to the run", e.ID, ErrWorkflowJob)
	}
	if done.Typed, err = driver.CheckType(d.q, job.Kind, e.Payload); err != nil {
		return done, fmt.Errorf("job %s: %w", e.ID, err)
	}
	var when pawl.Condition
	if e.Was != "" {
		when = driver.PayloadIs{Sum: e.Was}
	}
	if !e.DryRun {
		return done, q.Edit(ctx, e.ID, e.Payload, when)
	}
	if err := driver.CheckEdit(job, e.Payload, pawl.MaxBatchBytes); err != nil {
		return done, err
	}
	if when != nil && !when.Matches(job) {
		return done, driver.NotEligible(e.ID, "its payload has changed since")
	}
	if job.State == pawl.Dead {
		errs, err := d.q.DryRun(ctx, pawl.Change{Verb: pawl.VerbRetry}, e.ID)
		if err == nil {
			err = errs[0]
		}
		if err != nil {
			return done, err
		}
	}
	return done, driver.Edit(job, e.Payload, job.Created)
}
