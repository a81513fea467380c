package workflow

import (
	"slices"
	"strings"
)

// unbegun returns a mismatch if the function of a scope has returned, but the journal has calls of a
// branch below the scope that did not begin. If itself is set, only branches that the scope itself
// would begin count.
func (x *execution) unbegun(by *scope, itself bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped != nil || slices.ContainsFunc(x.scopes, func(s *scope) bool { return s.cancelled && !by.inUndo() }) {
		return nil
	}
	var first *entry
	for name, entries := range x.journal {
		if !by.covers(name) || inUndo(name) != by.inUndo() || x.lost(name) || itself && x.nearest(name) != by {
			continue
		}
		if first == nil || entries[0].seq < first.seq {
			first = entries[0]
		}
	}
	if first == nil {
		return nil
	}
	return x.stopLocked(x.complete(&DeterminismError{Want: first.String(), Seq: first.seq, Wrote: first.Build,
		Reason: "the function returned without the branch; keep the branches that were begun"}))
}

// lost reports whether a scope, or an enclosing scope, has lost a race. The caller holds the
// lock.
func (x *execution) lost(name string) bool {
	below := func(of string) bool { return name == of || strings.HasPrefix(name, of+"/") }
	for loser := range x.abandoned {
		if below(loser) {
			return true
		}
	}
	return slices.ContainsFunc(x.scopes, func(s *scope) bool { return s.abandoned && below(s.name) })
}
