package workflow

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Template is a run that can be started many times, as data: what [Flow.Start] takes, except for the
// engine and the ID.
type Template struct {
	Flow     string
	Queue    string
	Priority int8
	Retain   time.Duration
	Receives []string // signals that the flow declares
	Input    []byte   // MessagePack
}

// Template returns the template of runs with an input.
func (f *Flow[In, Out]) Template(in In) (Template, error) {
	if f.err != nil {
		return Template{}, fmt.Errorf("flow %q: %w", f.name, f.err)
	}
	input, err := encode("the input", in)
	return Template{Flow: f.name, Queue: f.draft.queue, Priority: f.draft.priority, Retain: f.draft.retain,
		Receives: f.draft.receives, Input: input}, err
}

// Starting is the start of a run as a part of another mutation. The methods of that mutation call
// the methods of Starting. See [driver.Mutation].
type Starting struct{ start }

// Run returns the ID of the run after Check.
func (s *Starting) Run() pawl.ID { return s.run }

// Starting returns the start of a run from a template. This process does not need to have the flow.
// As with [Flow.Start], Check returns [ErrConflict] if a run with the same ID and another input
// exists, and Apply starts nothing if a run with the same ID and input exists.
func (e *Engine) Starting(t Template, id string) (*Starting, error) {
	if err := validName("flow", t.Flow); err != nil {
		return nil, err
	}
	if err := validID(id); err != nil {
		return nil, err
	}
	kind := pawl.Define[struct{}](KindPrefix+t.Flow, pawl.OnQueue(t.Queue), pawl.Priority(t.Priority), pawl.MaxRetries(pawl.MaxMaxRetries))
	job, err := e.envelope(kind, pawl.NewID(e.now()))
	if err != nil {
		return nil, err
	}
	reread := func(stored []byte) ([]byte, error) { return stored, nil }
	s := &Starting{start{job: job, input: t.Input, reread: reread, row: runRow{
		Flow: t.Flow, ID: id, Status: Running, Queue: job.Queue, Retain: int64(t.Retain),
		OutputBytes: -1, Declared: t.Receives,
	}}}
	return s, s.encode(e)
}

var _ driver.Declared = (*Starting)(nil)

// Check returns what is wrong with a template that may come from anywhere.
func (t *Template) Check() error {
	if err := validName("flow", t.Flow); err != nil {
		return err
	}
	row := runRow{Flow: t.Flow, ID: "x", Status: Running, Queue: t.Queue, Declared: t.Receives}
	if len(t.Input) > MaxValue {
		return &pawl.InvalidError{Field: "input", Reason: fmt.Sprintf("it has %d bytes, at most %d are stored", len(t.Input), MaxValue)}
	}
	return row.sound()
}
