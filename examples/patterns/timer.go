package patterns

import (
	"time"

	"github.com/gopawl/pawl/workflow"
)

// Moved gives a reminder another delay, which begins when the reminder receives it.
var Moved = workflow.DefineSignal[time.Duration]("moved")

// Remind does one thing after a delay, which can be changed meanwhile. It returns how often that was.
func Remind(w World) *workflow.Flow[time.Duration, int] {
	return workflow.Define("remind", func(r *workflow.Run, delay time.Duration) (moves int, err error) {
		for {
			switch n, err := workflow.Select(r, "moved or due", Moved.Case(&delay), workflow.After(delay)); {
			case err != nil:
				return 0, err
			case n == 1:
				return moves, do(r, w, "remind")
			}
			moves++
		}
	})
}

// Typed is a new version of a text.
var Typed = workflow.DefineSignal[string]("typed")

// Save stores a text once nothing was typed for a while. It returns the text.
func Save(w World) *workflow.Flow[time.Duration, string] {
	return workflow.Define("save", func(r *workflow.Run, quiet time.Duration) (text string, err error) {
		if text, err = Typed.Wait(r, workflow.Forever); err != nil {
			return "", err
		}
		for {
			switch n, err := workflow.Select(r, "typed or quiet", Typed.Case(&text), workflow.After(quiet)); {
			case err != nil:
				return "", err
			case n == 1:
				return text, do(r, w, "save "+text)
			}
		}
	})
}
