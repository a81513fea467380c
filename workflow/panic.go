package workflow

import (
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/worker"
)

// panicked returns the error of a panic, like the error of a handler that panics. Call it
// where the panic is recovered. The journal keeps its stack: from the panic or runtime.Goexit
// down to the call of this package, up to maxStack bytes.
func panicked(value any) worker.PanicError {
	return worker.PanicError{Value: value, Stack: stackOfApp(string(debug.Stack()))}
}

// beginOf returns the newest frame that ends a function without a return.
var beginOf = regexp.MustCompile(`\n(panic|runtime\.Goexit)\(.*\n\t.*\n`)

// ownFrame is the prefix of this package's frames in a stack.
const ownFrame = "\ngithub.com/gopawl/pawl/workflow."

func stackOfApp(stack string) string {
	head, frames, _ := strings.Cut(stack, "\n") // goroutine 7 [running]:
	if at := beginOf.FindStringIndex(frames); at != nil {
		frames = frames[at[1]:]
	}
	if app, _, _ := strings.Cut("\n"+frames, ownFrame); app != "" {
		frames = app[1:] // a panic of this package is not trimmed
	}
	return ellipsis.Truncate(head+"\n"+frames, maxStack)
}
