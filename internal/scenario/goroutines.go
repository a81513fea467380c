package scenario

import (
	"bytes"
	"regexp"
	"runtime"
)

// ofBubble finds the bubble of a goroutine in the first line of its stack.
var ofBubble = regexp.MustCompile(`^goroutine \d+ .*synctest bubble (\d+)`)

// goroutines returns the stacks of the goroutines in the bubble of the caller. Others of the process come and go, such as
// those that run finalizers, so [runtime.NumGoroutine] is no measure.
func goroutines() (stacks []string) {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) {
			text = text[:n]
			break
		}
		text = make([]byte, 2*len(text))
	}
	var own []byte // the caller is the first one
	for stack := range bytes.SplitSeq(text, []byte("\n\n")) {
		found := ofBubble.FindSubmatch(stack)
		switch {
		case found == nil:
			continue
		case own == nil:
			own = found[1]
		}
		if bytes.Equal(found[1], own) {
			stacks = append(stacks, string(stack))
		}
	}
	return stacks
}
