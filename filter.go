package pawl

import "time"

// Filter chooses jobs. The zero value chooses all.
type Filter struct {
	State  State  // "" means any
	Queue  string // "" means any
	Kind   string // "" means any
	Reason Reason // of the death; "" means any, and jobs that are alive too

	// DiedBefore chooses dead letters that died earlier; zero means any time.
	DiedBefore time.Time
}

// Matches reports whether f chooses e.
func (f Filter) Matches(e *Envelope) bool {
	switch {
	case f.State != "" && f.State != e.State,
		f.Queue != "" && f.Queue != e.Queue,
		f.Kind != "" && f.Kind != e.Kind:
		return false
	case f.Reason == "" && f.DiedBefore.IsZero():
		return true
	}
	return e.Death != nil && (f.Reason == "" || f.Reason == e.Death.Reason) &&
		(f.DiedBefore.IsZero() || e.Death.At.Before(f.DiedBefore))
}
