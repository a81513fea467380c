package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
)

// SignalDefinition is a [Signal] of any type.
type SignalDefinition interface {
	// Name returns the name of the signal.
	Name() string

	problem() error
}

// Receives declares the signals that a flow waits for. Sending any other signal then returns
// [ErrUndeclared], and a Wait for one blocks the run. A flow without declarations accepts any
// signal, so a misspelled signal stays unread. Several options add up.
//
// The declaration of the build that runs the flow applies. If no process has the file, or
// before [Engine.Handle], the declaration of the last build that ran the run applies.
func Receives(signals ...SignalDefinition) Option {
	return func(d *flowDraft) {
		for _, s := range signals {
			if err := s.problem(); err != nil && d.err == nil {
				d.err = err
			}
			if !slices.Contains(d.receives, s.Name()) {
				d.receives = append(d.receives, s.Name())
			}
		}
		slices.Sort(d.receives)
		if len(d.receives) > MaxDeclared && d.err == nil {
			d.err = &pawl.InvalidError{Field: "signals", Reason: fmt.Sprintf("%d are declared, at most %d are allowed", len(d.receives), MaxDeclared)}
		}
	}
}

// Accepts returns [ErrUndeclared] if the flow of the run declares signals, but not this name.
func (i *Info) Accepts(signal string) error {
	if len(i.Declared) == 0 || slices.Contains(i.Declared, signal) {
		return nil
	}
	return fmt.Errorf("workflow %s %q takes %s: %w", i.Flow, i.ID, strings.Join(i.Declared, ", "), ErrUndeclared)
}

// declared returns the signals that the flow of a run declares. They come from this process
// if it has the flow, and otherwise from the run's row.
func (h *hub) declared(row *runRow) []string {
	if h != nil {
		if f, ok := h.flows.Load(row.Flow); ok {
			return f.(Definition).signals()
		}
	}
	return row.Declared
}

// openHub returns the hub of a source, or nil if no engine was opened over it.
func openHub(s Source) *hub {
	q, ok := s.(Store)
	if !ok {
		return nil
	}
	hubs.Lock()
	defer hubs.Unlock()
	return hubs.of[q]
}

// mayWait blocks a run that waits for an undeclared signal, since no caller could send it.
func (x *execution) mayWait(signal string) error {
	declared := x.flow.signals()
	if len(declared) == 0 || slices.Contains(declared, signal) {
		return nil
	}
	return x.mismatch(&DeterminismError{Want: "one of the signals " + strings.Join(declared, ", "), Got: fmt.Sprintf("%s %q", KindWait, signal),
		Reason: "the flow does not declare this signal, so nobody can send it; add it to the Receives of the flow"})
}

// declared returns the signals that the flow declares in this build.
func (x *execution) declared() []string { return x.flow.signals() }
