package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Matches reports whether f chooses e, which has its payload and history as far as f asks
// for them. A filter with a payload term that is none chooses nothing; see [ParsePayload].
func (f Filter) Matches(e *pawl.Envelope) bool {
	m, err := f.matcher()
	return err == nil && m.Matches(e)
}

// ReadsBody reports whether f looks at the last error or at the payload. It implements
// [pawl.Condition].
func (f Filter) ReadsBody() bool { return f.Error != "" || len(f.Payload) > 0 }

// StateSince is since when a job is in its state, as far as its record tells:
//
//   - dead, completed, leased: when it died, succeeded, was leased
//   - ready: when its time came. A job that was interrupted in between has kept
//     that time, and its place
//   - delayed: when the run failed whose retry it waits for; else when it was created,
//     since when a snooze began is not kept
func StateSince(e *pawl.Envelope) time.Time {
	switch {
	case e.State == pawl.Dead && e.Death != nil:
		return e.Death.At
	case e.State == pawl.Completed:
		return e.Completed
	case e.State == pawl.Leased:
		return e.LeasedSince
	case e.State == pawl.Delayed && !e.BackoffSince.IsZero():
		return e.BackoffSince
	case e.State == pawl.Delayed:
		return e.Created
	}
	return e.NotBefore
}

// lists reports whether the filter has a list of values.
func (f *Filter) lists() bool {
	return len(f.Queues)+len(f.Kinds)+len(f.States)+len(f.Reasons) > 0
}

// anyOf reports whether a list has a value, or is empty.
func anyOf[T ~string](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// matcher is a filter that was looked through once, for many jobs.
type matcher struct {
	filter *Filter
	error  string // in lower case
	terms  []term
}

func (f *Filter) matcher() (*matcher, error) {
	terms, err := parseTerms(f.Payload)
	if err != nil {
		return nil, err
	}
	return &matcher{f, strings.ToLower(f.Error), terms}, nil
}

// simple reports whether the filter is one of package pawl, which a list in the file
// answers itself.
func (m *matcher) simple() bool {
	f := m.filter
	return !f.lists() && m.error == "" && len(m.terms) == 0 && f.Since.IsZero() && f.Until.IsZero() && f.Before.IsZero()
}

// parts are what is to be read of a job for the filter and for a list of so much detail.
func (m *matcher) parts(d Detail) (parts bolt.Parts) {
	switch d {
	case Whole:
		return bolt.Whole
	case Summary:
		parts = bolt.LastFailure
	case Payloads:
		parts = bolt.LastFailure | bolt.Payload
	}
	if m.error != "" {
		parts |= bolt.LastFailure
	}
	if len(m.terms) > 0 {
		parts |= bolt.Payload
	}
	return parts
}

// condition is the filter as a condition of a change; nil for a filter that chooses all.
func (f *Filter) condition() (pawl.Condition, error) {
	if f == nil || f.isZero() {
		return nil, nil
	}
	m, err := f.matcher()
	if err != nil {
		return nil, err
	}
	if err := f.Filter.Check(); err != nil {
		return nil, err
	}
	return m, nil
}

// ReadsBody implements [pawl.Condition].
func (m *matcher) ReadsBody() bool { return m.filter.ReadsBody() }

// Matches implements [pawl.Condition].
func (m *matcher) Matches(e *pawl.Envelope) bool {
	f := m.filter
	return f.Filter.Matches(e) &&
		anyOf(f.Queues, e.Queue) && anyOf(f.Kinds, e.Kind) && anyOf(f.States, e.State) &&
		(len(f.Reasons) == 0 || e.Death != nil && anyOf(f.Reasons, e.Death.Reason)) &&
		(f.Since.IsZero() || !e.Created.Before(f.Since)) &&
		(f.Until.IsZero() || e.Created.Before(f.Until)) &&
		(f.Before.IsZero() || StateSince(e).Before(f.Before)) &&
		(m.error == "" || strings.Contains(strings.ToLower(e.LastError()), m.error)) &&
		matchTerms(m.terms, e.Payload)
}
