package admin

import (
	"errors"

	"github.com/gopawl/pawl"
)

// What streams are made of.

type eventBody struct {
	Type     string `json:"type"`
	At       Stamp  `json:"at"`
	Job      *Job   `json:"job"`
	Took     Span   `json:"took"`
	TimedOut bool   `json:"timed_out"`
	Delay    Span   `json:"delay"`
	Backoff  Span   `json:"backoff"`
	Cause    *Text  `json:"cause"`
	Missed   int64  `json:"missed"`
}

func eventBodyOf(e Event) *eventBody {
	b := &eventBody{
		Type: string(e.Type), At: Stamp{e.At}, Took: Span(e.Took), TimedOut: e.TimedOut,
		Delay: Span(e.Delay), Backoff: Span(e.Backoff), Cause: textOrNull(e.Cause), Missed: e.Missed,
	}
	if e.Job != nil {
		job := JobOf(e.Job, PayloadNone)
		b.Job = &job
	}
	return b
}

func (b *eventBody) event() (Event, error) {
	e := Event{Missed: b.Missed, Event: pawl.Event{
		Type: pawl.EventType(b.Type), At: b.At.Time, Took: b.Took.Duration(), TimedOut: b.TimedOut,
		Delay: b.Delay.Duration(), Backoff: b.Backoff.Duration(), Cause: textOf(b.Cause),
	}}
	if b.Job == nil {
		return e, errors.New("an event without a job")
	}
	var err error
	e.Job, err = b.Job.Envelope()
	return e, err
}

// streamLine is one line of a stream; it has one of its fields.
type streamLine struct {
	Progress  *progressBody `json:"progress,omitempty"`
	Event     *eventBody    `json:"event,omitempty"`
	Heartbeat *Stamp        `json:"heartbeat,omitempty"`
	Done      bool          `json:"done,omitempty"`
	Error     *problem      `json:"error,omitempty"`
}

type progressBody struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}
