package workflow

import (
	"context"

	"github.com/gopawl/pawl"
)

// headers returns the options of a job that a call with a context starts.
func (e *Engine) headers(ctx context.Context) (opts []pawl.Option) {
	if e.opts.Headers == nil {
		return nil
	}
	for key, value := range e.opts.Headers(ctx) {
		opts = append(opts, pawl.Header(key, value))
	}
	return opts
}

// envelope returns the job of a run, signed if jobs are signed.
func (e *Engine) envelope(kind *pawl.Kind[struct{}], run pawl.ID, opts ...pawl.Option) (*pawl.Envelope, error) {
	job, err := kind.Envelope(struct{}{}, opts...)
	if err != nil {
		return nil, err
	}
	job.ID = run
	if e.opts.Sign != nil {
		if err := e.opts.Sign.Sign(job); err != nil {
			return nil, err
		}
	}
	return job, nil
}

// anew makes a new job for a run from the row of the run alone. This process may not have
// the flow.
func (e *Engine) anew(run pawl.ID, row *runRow) (*pawl.Envelope, error) {
	kind := pawl.Define[struct{}](KindPrefix+row.Flow, pawl.MaxRetries(pawl.MaxMaxRetries))
	if f, ok := e.hub.flows.Load(row.Flow); ok {
		kind = f.(Definition).kind()
	}
	return e.envelope(kind, run, pawl.OnQueue(row.Queue))
}
