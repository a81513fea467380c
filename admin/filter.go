package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Matches reports whether f selects e, which has its payload and history if f needs them. A
// filter with an invalid payload term selects nothing; see [ParsePayload].
func (f Filter) Matches(e *pawl.Envelope) bool {
	m, err := f.matcher()
	return err == nil && m.Matches(e)
}

// ReadsBody reports whether f looks at the last error or at the payload. Package
// driver asks for it.
func (f Filter) ReadsBody() bool { return f.Error != "" || len(f.Payload) > 0 }

// StateSince returns since when a job has been in its state, by its record:
//
//   - dead, completed, leased: when it became dead, succeeded, or was leased
//   - ready: when its time came. A job that was interrupted in between has kept
//     that time, and its place
//   - delayed: when the attempt failed whose retry it waits for; otherwise when it was created,
//     since the record does not keep when a snooze began
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

// OneOrMore splits the values of a field of a filter: a single value, or a list of several.
func OneOrMore[T ~string](values []string) (one T, several []T) {
	if len(values) == 1 {
		return T(values[0]), nil
	}
	for _, value := range values {
		several = append(several, T(value))
	}
	return "", several
}

// anyOf reports whether a list contains a value, or is empty.
func anyOf[T ~string](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// matcher is a filter prepared for many jobs.
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

// simple reports whether package pawl has the same filter, which a list in the file answers
// without reading jobs.
func (m *matcher) simple() bool {
	f := m.filter
	return !f.lists() && m.error == "" && len(m.terms) == 0 && f.Since.IsZero() && f.Until.IsZero() && f.Before.IsZero()
}

// parts returns what to read of a job for the filter and for a list of that detail.
func (m *matcher) parts(d Detail) (parts driver.Parts) {
	switch d {
	case Whole:
		return driver.AllParts
	case Summary:
		parts = driver.PartLastFailure
	case Payloads:
		parts = driver.PartLastFailure | driver.PartPayload
	}
	if m.error != "" {
		parts |= driver.PartLastFailure
	}
	if len(m.terms) > 0 {
		parts |= driver.PartPayload
	}
	return parts
}

// condition returns the filter as a condition of a change; nil for a filter that selects all.
func (f *Filter) condition() (pawl.Condition, error) {
	if f == nil || f.isZero() {
		return nil, nil
	}
	m, err := f.matcher()
	if err != nil {
		return nil, err
	}
	if err := driver.CheckFilter(f.Filter); err != nil {
		return nil, err
	}
	return m, nil
}

// ReadsBody reports whether Matches needs the payload or the history; see [driver.ReadsBody].
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
