package workflow

import (
	"runtime/debug"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// panicked is the error of a panic, as that of a handler is; to be called where it is recovered.
// Its stack is what a journal keeps of it: from the panic down to the call of this package, and
// maxStack bytes of that.
func panicked(value any) worker.PanicError {
	return worker.PanicError{Value: value, Stack: stackOfApp(string(debug.Stack()))}
}

// ownFrame begins the frames of this package in a stack.
const ownFrame = "\ngithub.com/gopawl/pawl/workflow."

func stackOfApp(stack string) string {
	head, frames, _ := strings.Cut(stack, "\n") // goroutine 7 [running]:
	if _, below, found := strings.Cut(frames, "\npanic("); found {
		if _, below, found = strings.Cut(below, "\n\t"); found { // where panic itself is
			_, frames, _ = strings.Cut(below, "\n")
		}
	}
	if app, _, _ := strings.Cut("\n"+frames, ownFrame); app != "" {
		frames = app[1:] // a panic of this package is not cut
	}
	return pawl.Clip(head+"\n"+frames, maxStack)
}
