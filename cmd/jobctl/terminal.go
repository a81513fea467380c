package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is an interactive terminal. The null device is a character
// device too.
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

// columnsOf returns the width of a terminal, or 0 for another stream.
func columnsOf(stream any) int {
	f, ok := stream.(*os.File)
	if !ok || !isTerminal(stream) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// askable rejects a question if no user can answer it. -y answers it instead.
func (a *app) askable(words, do string) error {
	switch {
	case a.flags.yes:
	case !a.people():
		return usage(words, "-o %s does not ask; add -y to %s", a.flags.output, do)
	case !a.terminal:
		return usage(words, "there is no terminal for the question; add -y to %s", do)
	}
	return nil
}

// confirm asks on standard error. Only y and yes confirm. It also returns when its context ends,
// because reading from a terminal does not end on an interruption.
func (a *app) confirm(ctx context.Context, question string) bool {
	fmt.Fprintf(a.stderr, "%s Type y: ", question)
	answered := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // at the end of input, use what was read
		answered <- answer
	}()
	select {
	case answer := <-answered:
		if !strings.HasSuffix(answer, "\n") {
			fmt.Fprintln(a.stderr) // the end of input leaves the cursor on the question's line
		}
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return false
	}
}

func notConfirmed() error { return &failure{exitError, "not confirmed, nothing was changed", ""} }
