package flows

import (
	"context"
	"slices"
	"strings"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// decided has the fields of the result of a race, or of a cancelled branch, that this package reads.
type decided struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Winner   int
	Losers   []string
	Unheard  []uint32
	Branches []string
}

// losers requires that each child of a losing branch has ended, or has a request to end.
func (f *file) losers(ctx context.Context, journal []workflow.Entry) error {
	var lost []string
	for _, e := range journal {
		if slices.Contains([]workflow.EntryKind{workflow.KindRace, workflow.KindCancel, workflow.KindAll}, e.Kind) && e.State == workflow.EntryDone {
			var race decided
			if err := driver.DecodePayload(e.Result, &race); err != nil {
				return differ("%s has a result that cannot be read: %v", e.Step(), err)
			}
			lost = append(lost, race.Losers...)
		}
	}
	for _, e := range journal {
		if e.Kind != workflow.KindChild || e.Child.IsZero() || !below(e.Scope, lost) {
			continue
		}
		child, err := f.r.Info(ctx, e.Child)
		if err != nil {
			return err
		}
		if !child.Status.Ended() && child.Cancelling == "" {
			return differ("%s was abandoned, and its child %s is %s", e.Step(), child.Run, child.Status)
		}
	}
	return nil
}

// below reports whether a scope is one of these, or a branch of one.
func below(scope string, these []string) bool {
	for _, name := range these {
		if scope == name || strings.HasPrefix(scope, name+"/") {
			return true
		}
	}
	return false
}
