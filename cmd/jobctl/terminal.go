package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// isTerminal reports whether a stream is one where somebody reads and types. The
// null device is a character device too.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// confirm asks on standard error. Only y and yes are a yes.
func (a *app) confirm(question string) bool {
	fmt.Fprintf(a.stderr, "%s Type y: ", question)
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // at the end of input, what there is
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
