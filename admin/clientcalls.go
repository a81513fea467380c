package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// The calls of a client that are one request and one answer.

func (c *client) Stats(ctx context.Context) (Stats, error) {
	var b statsBody
	if err := c.ask(ctx, call{method: http.MethodGet, path: pathStats, into: &b}); err != nil {
		return Stats{}, err
	}
	return b.stats(), nil
}

func (c *client) List(ctx context.Context, q Query) (Page, error) {
	var b pageAnswer
	values := valuesOf(q)
	if q.Detail == Whole || q.Detail == Payloads {
		values.Set(paramForm, formNames[PayloadBase64])
	}
	if err := c.ask(ctx, call{method: http.MethodGet, path: pathJobs, query: values, into: &b}); err != nil {
		return Page{}, err
	}
	page, err := b.page()
	if err != nil {
		return Page{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return page, nil
}

func (c *client) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	var j Job
	form := url.Values{paramForm: {formNames[PayloadBase64]}}
	if err := c.ask(ctx, call{method: http.MethodGet, path: pathJobs + "/" + id.String(), query: form, into: &j}); err != nil {
		return nil, err
	}
	e, err := j.Envelope()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return e, nil
}

func (c *client) FindIDs(ctx context.Context, part string) ([]pawl.ID, error) {
	var found idsBody
	if err := c.ask(ctx, call{method: http.MethodGet, path: pathIDs, query: url.Values{paramPart: {part}}, into: &found}); err != nil {
		return nil, err
	}
	if len(found.IDs) > MaxFound {
		return nil, fmt.Errorf("%w: it has %d IDs of at most %d", errGarbled, len(found.IDs), MaxFound)
	}
	return found.IDs, nil
}

func (c *client) Do(ctx context.Context, a Action, ids ...pawl.ID) ([]error, error) {
	most := MaxIDs
	if a.DryRun {
		most = MaxDryIDs
	}
	if len(ids) > most {
		return nil, invalid("ids", "%d of them, one call takes %d", len(ids), most)
	}
	var done doneAnswer
	if err := c.ask(ctx, call{method: http.MethodPost, path: pathDo, body: doBodyOf(a, ids), change: !a.DryRun, into: &done}); err != nil {
		return nil, err
	}
	if len(done.Errors) != len(ids) {
		return nil, fmt.Errorf("%w: it answered for %d of %d jobs", errGarbled, len(done.Errors), len(ids))
	}
	errs := make([]error, len(ids))
	for i, p := range done.Errors {
		errs[i] = p.err()
	}
	return errs, nil
}

// post asks for a change.
func (c *client) post(ctx context.Context, path string, body, into any) error {
	return c.ask(ctx, call{method: http.MethodPost, path: path, body: body, change: true, into: into})
}

func (c *client) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error {
	if len(jobs) == 0 {
		return nil
	}
	if _, err := pawl.CheckBatch(jobs, pawl.MaxBatchBytes); err != nil {
		return err // as the queue would say; JSON has no form for some of it
	}
	return c.store(ctx, pathJobs, jobs, nil)
}

func (c *client) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []bolt.Effect) error {
	if len(jobs)+len(effects) == 0 {
		return nil
	}
	for i, e := range jobs {
		if e == nil {
			return fmt.Errorf("job %d: %w", i, e.Validate())
		}
	}
	return c.store(ctx, pathRestore, jobs, effects)
}

// store sends jobs, each with an ID: so after an error whose outcome is not known they can be
// looked up.
func (c *client) store(ctx context.Context, path string, jobs []*pawl.Envelope, effects []bolt.Effect) error {
	given := make([]pawl.ID, len(jobs))
	body := jobsBody{Jobs: make(list[Job], len(jobs)), Effects: effectBodiesOf(effects)}
	now := time.Now()
	for i, e := range jobs {
		sent := *e
		if given[i] = e.ID; e.ID.IsZero() {
			given[i] = pawl.NewID(now)
			sent.ID = given[i]
		}
		body.Jobs[i] = JobOf(&sent, PayloadBase64)
	}
	var stored storedAnswer
	err := c.post(ctx, path, body, &stored)
	if err == nil {
		err = stored.complete(jobs)
	}
	if maybeDone(ctx, err) {
		for i, e := range jobs {
			e.ID = given[i]
		}
	}
	return err
}

func (c *client) Pause(ctx context.Context, queue string) error {
	return c.post(ctx, pathPause, queueName{Text(queue)}, nil)
}

func (c *client) Resume(ctx context.Context, queue string) error {
	return c.post(ctx, pathResume, queueName{Text(queue)}, nil)
}

func (c *client) Reap(ctx context.Context) (int, error) {
	var b reapBody
	err := c.post(ctx, pathReap, nothing{}, &b)
	return b.Reaped, err
}

func (c *client) Effects(ctx context.Context, after string) ([]bolt.Effect, string, error) {
	var b effectsBody
	var query url.Values
	if after != "" {
		query = url.Values{paramAfter: {after}}
	}
	if err := c.ask(ctx, call{method: http.MethodGet, path: pathEffects, query: query, into: &b}); err != nil {
		return nil, "", err
	}
	return effectsOf(b.Effects), b.Next, nil
}
