package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Limits of a run.
const (
	MaxName     = 128      // bytes of the name of a flow, a step, a signal or a branch
	MaxID       = 255      // bytes of an ID
	MaxValue    = 1 << 20  // bytes of an encoded input, result or signal payload
	MaxJournal  = 64 << 20 // bytes of all results and errors of one run, and of all values it has published
	MaxEntries  = 10_000   // calls of one run; a Restart resets the number
	MaxBranches = 1_000    // concurrent branches
	MaxSignals  = 10_000   // unconsumed signals of one run
	MaxSeen     = 10_000   // newest deduplication IDs of signals that a run remembers
	MaxDeclared = 1_000    // signals that a flow declares
	MaxListed   = 10_000   // runs that one List returns
	MaxPublish  = 1_000    // names under which one run has published values
	MaxPlaces   = 1_000    // the highest MaxOpen and MaxOpenPerKey
	MaxStream   = 10_000   // items that one stream keeps
	MaxStreams  = 16       // streams of one run

	MaxAttributes     = 32  // attributes of one run
	MaxAttributeName  = 64  // bytes of the name of an attribute
	MaxAttributeValue = 255 // bytes of the value of an attribute

	DefaultRetention = 7 * 24 * time.Hour // retention of a run that has ended
)

const (
	maxErrorText = 4 << 10

	// leastErrorText is how much of an error a full journal keeps.
	leastErrorText = 256

	maxChain  = 16
	maxStack  = 2 << 10 // bytes of the stack of a panic
	maxInline = 4 << 10 // bytes of a result that is stored in its entry
	maxInRow  = 256     // bytes of an input or output that is stored in the row of its run, which is written often

	// leastSuspension is the shortest wait for which a run frees its slot.
	leastSuspension = 100 * time.Millisecond

	// forever is the delay of a job that waits for no time.
	forever = 100 * 365 * 24 * time.Hour
)

// validName checks the name of a flow, a step, a signal or a branch.
func validName(what, name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "its name is empty"
	case len(name) > MaxName:
		reason = fmt.Sprintf("its name has %d bytes, at most %d are allowed", len(name), MaxName)
	case strings.HasPrefix(name, "_"):
		reason = fmt.Sprintf("%q begins with _, which is kept for the package", name)
	case strings.ContainsAny(name, "\x00/#"):
		reason = fmt.Sprintf("%q has a NUL, / or #, which separate names", name)
	default:
		return nil
	}
	return &pawl.InvalidError{Field: what, Reason: reason}
}

func validID(id string) error {
	reason := ""
	switch {
	case id == "":
		reason = "is empty"
	case len(id) > MaxID:
		reason = fmt.Sprintf("has %d bytes, at most %d are allowed", len(id), MaxID)
	case strings.ContainsRune(id, 0):
		reason = "has a NUL"
	default:
		return nil
	}
	return &pawl.InvalidError{Field: "workflow ID", Reason: reason}
}

// encode encodes a value to store.
func encode(what string, v any) ([]byte, error) {
	b, err := driver.EncodePayload(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(b) > MaxValue {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are stored: %w; store it elsewhere and pass a reference", what, len(b), MaxValue, ErrTooLarge)
	}
	return b, nil
}
