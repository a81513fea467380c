package workflowtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Journal holds the calls that a run has made.
type Journal []workflow.Entry

// Journal returns the calls that the run has made, with results: those of its function first, then
// those of its branches by name, then undo steps; each in order.
func (r *Run[Out]) Journal() Journal {
	r.k.t.Helper()
	entries, err := r.k.engine.Journal(r.k.t.Context(), r.run, true)
	if err != nil {
		r.k.t.Fatalf("workflowtest: %v", err)
	}
	slices.SortStableFunc(entries, func(a, b workflow.Entry) int { return compareScopes(a.Scope, b.Scope) })
	return entries
}

// compareScopes orders numbered branches by number.
func compareScopes(a, b string) int {
	if undoA, undoB := strings.HasPrefix(a, "_"), strings.HasPrefix(b, "_"); undoA != undoB {
		if undoA {
			return 1
		}
		return -1
	}
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(a, b string) int {
		restA, restB := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
		if a, b := a[len(restA):], b[len(restB):]; restA == restB && len(a) != len(b) {
			return cmp.Compare(len(a), len(b))
		}
		return cmp.Compare(a, b)
	})
}

const digits = "0123456789"

// Steps returns the names of the calls in order.
func (j Journal) Steps() (steps []string) {
	for i := range j {
		steps = append(steps, j[i].Step())
	}
	return steps
}

// String returns a line for each call: its kind, its name, its duration if not zero, and its result.
// It contains no absolute times and no IDs, so it can be compared with a stored text:
func (j Journal) String() string {
	var b strings.Builder
	for i := range j {
		fmt.Fprintln(&b, line(&j[i]))
	}
	return b.String()
}

func line(e *workflow.Entry) string {
	text := fmt.Sprintf("%s %s", e.Kind, e.Step())
	if e.Attempts > 1 {
		text += fmt.Sprintf(", %d attempts", e.Attempts)
	}
	switch took := e.Finished.Sub(e.Started); {
	case e.Finished.IsZero() && !e.Due.IsZero():
		text += fmt.Sprintf(", until %v", e.Due.Sub(e.Started))
	case e.Finished.IsZero():
	case took > 0:
		text += fmt.Sprintf(", %v", took.Round(time.Microsecond))
	}
	switch e.State {
	case workflow.EntryPending:
		text += ": pending"
		if e.Error != "" {
			text += " after " + firstLine(e.Error)
		}
	case workflow.EntryFailed:
		text += ": failed: " + firstLine(e.Error)
	default:
		if value := valueOf(e.Result); value != "" {
			text += ": " + value
		}
	}
	return text
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// valueOf returns a result as JSON, or "" if there is none.
func valueOf(result []byte) string {
	if len(result) == 0 {
		return ""
	}
	var v any
	if err := driver.DecodePayload(result, &v); err != nil {
		return fmt.Sprintf("(%d bytes)", len(result))
	}
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
