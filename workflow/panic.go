package workflow

import (
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// panicked is the error of a panic, as that of a handler is; to be called where it is recovered.
// Its stack is what a journal keeps of it: from the panic, or runtime.Goexit, down to the call of
// this package, and maxStack bytes of that.
func panicked(value any) worker.PanicError {
	return worker.PanicError{Value: value, Stack: stackOfApp(string(debug.Stack()))}
}

// beginOf is the frame by which a function ends that does not return, the newest of them.
var beginOf = regexp.MustCompile(`\n(panic|runtime\.Goexit)\(.*\n\t.*\n`)

// ownFrame begins the frames of this package in a stack.
const ownFrame = "\ngithub.com/gopawl/pawl/workflow."

func stackOfApp(stack string) string {
	head, frames, _ := strings.Cut(stack, "\n") // goroutine 7 [running]:
	if at := beginOf.FindStringIndex(frames); at != nil {
		frames = frames[at[1]:]
	}
	if app, _, _ := strings.Cut("\n"+frames, ownFrame); app != "" {
		frames = app[1:] // a panic of this package is not cut
	}
	return pawl.Clip(head+"\n"+frames, maxStack)
}
