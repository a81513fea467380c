package workflow

import (
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Version returns which version of a piece of code a run must execute, from min to max, so that
// code can change while runs are active. The version is stored under its name and never
// changes. A run that reaches the call for the first time gets max. A run that had already
// passed this place before the code had the call gets min.
//
// The end of a branch is an exception, because the journal does not store that a branch has ended. If
// code after the last call of a branch gets a call of Version, a run whose branch has ended gets max
// there, although the run may have used the result of the branch. So call Version before [Go], and use
// what it returns in the branch.
//
//	switch v, err := workflow.Version(r, "tax", 1, 2); {
//	case err != nil:
//		return out, err
//	case v == 1: … // the old code
//	default: …
//	}
//
// A run whose version is no longer between min and max is blocked. Keep min at the version
// of the code before the call was added, until no older run is left. An older run has no
// version in its journal, so only its calls show which code it ran.
func Version(r *Run, name string, min, max int) (int, error) {
	s, x := r.s, r.x
	if err := validName("version", name); err != nil {
		return 0, err
	}
	if min > max {
		return 0, &pawl.InvalidError{Field: "version", Reason: fmt.Sprintf("%d is above %d", min, max)}
	}
	s.spin()
	x.mu.Lock()
	known := s.versions[name] != nil
	x.mu.Unlock()
	if !known { // others may wait for the end of this scope before they reach the end of the journal
		if err := s.awaitTurn(KindVersion); err != nil {
			return 0, err
		}
	}
	x.mu.Lock()
	if err := s.mayCall(); err != nil {
		x.mu.Unlock()
		return 0, err
	}
	if e := s.versions[name]; e != nil {
		defer x.mu.Unlock()
		if s.unasked[name] != nil {
			s.looked(e)
		}
		delete(s.unasked, name)
		var v int
		if err := driver.DecodePayload(e.Result, &v); err != nil {
			return 0, x.stopLocked(err)
		}
		if v < min || v > max {
			return 0, x.stopLocked(x.complete(&DeterminismError{Want: fmt.Sprintf("version %d of %q", v, name),
				Got: fmt.Sprintf("versions %d to %d", min, max), Seq: e.seq, Wrote: e.Build,
				Reason: "keep the code of a version until no run has it"}))
		}
		return v, nil
	}
	v, frontier := max, s.at >= len(s.entries)
	if !frontier {
		v = min
	}
	if x.dry && !(frontier && s.mute()) {
		x.mu.Unlock()
		return v, nil
	}
	if frontier {
		if err := x.mayGoOn(s, KindVersion); err != nil {
			x.mu.Unlock()
			return 0, err
		}
	}
	result, err := driver.EncodePayload(v)
	if err != nil {
		x.mu.Unlock()
		return 0, err
	}
	e := &entry{Scope: s.name, At: -1, Name: name, Occurrence: 1, Kind: KindVersion}
	if err := x.number(e); err != nil {
		defer x.mu.Unlock()
		return 0, s.refuse(err)
	}
	e.finish(result, x.engine.now())
	s.versions[name] = e
	s.looked(e)
	x.mu.Unlock()
	if err := x.save(e); err != nil {
		return 0, err
	}
	return v, nil
}
