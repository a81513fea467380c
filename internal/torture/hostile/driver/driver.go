//go:build pawl_torture

package main

// This file is not part of this module's build. The family "jobctl" adds it to its build of
// jobctl, so one process runs many command lines with the command's own function. See
// ../jobctl.go.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	process "github.com/gopawl/pawl/internal/torture/usage"
)

// drivenAnswer is the result of a command line.
type drivenAnswer struct {
	Code           int
	Stdout, Stderr []byte
	Panic          string
	Took           time.Duration // CPU time
	Bytes          uint64        // allocated in total
}

// With the variable, each line of standard input is the arguments of a command line as JSON,
// and each line of output is its answer. The first line of output names all commands.
func init() {
	if os.Getenv("PAWL_TORTURE_DRIVEN") == "" {
		return
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(drivenWords())
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var args []string
		if err := json.Unmarshal(line, &args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = out.Encode(driven(args))
	}
}

// drivenWords names every command, "job list" among them.
func drivenWords() (words []string) {
	a := &app{env: func(string) string { return "" }}
	for _, c := range leaves(a.commands()) {
		words = append(words, wordsOf(c))
	}
	return words
}

func driven(args []string) (a drivenAnswer) {
	var stdout, stderr bytes.Buffer
	began, before := process.CPU(), process.Allocated()
	defer func() {
		a.Took, a.Bytes = process.CPU()-began, process.Allocated()-before
		a.Stdout, a.Stderr = stdout.Bytes(), stderr.Bytes()
		if p := recover(); p != nil {
			a.Panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	a.Code = runIn(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	return a
}
