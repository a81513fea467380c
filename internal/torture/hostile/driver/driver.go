//go:build pawl_torture

package main

// This file is not built here. The family "jobctl" adds it to the command jobctl when it
// builds that, so that one process carries out many command lines, by the same function as
// the command itself: see ../jobctl.go.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"
)

// drivenAnswer is what became of a command line.
type drivenAnswer struct {
	Code           int
	Stdout, Stderr []byte
	Panic          string
	Took           time.Duration
	Bytes          uint64 // allocated in all
}

// With the variable, lines of JSON come on standard input, each the arguments of one
// command line, and go out as answers. The first line that goes out names all commands.
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
	began, before := time.Now(), drivenBytes()
	defer func() {
		a.Took, a.Bytes = time.Since(began), drivenBytes()-before
		a.Stdout, a.Stderr = stdout.Bytes(), stderr.Bytes()
		if p := recover(); p != nil {
			a.Panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	a.Code = runIn(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	return a
}

func drivenBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
