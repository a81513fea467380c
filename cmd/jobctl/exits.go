package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes, one for each decision that a script makes.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNoMatch     = 3
	exitLocked      = 4
	exitDamaged     = 5
	exitConflict    = 6
	exitFormat      = 7
	exitDead        = 8
	exitInterrupted = 130 // as in a shell
)

// exitMeans has the short and the full description of each exit code.
var exitMeans = []struct {
	code        int
	short, long string
}{
	{exitOK, "done", "done; a list may be empty"},
	{exitError, "an error", "an error, or it is not known whether the change was made; the message\nsays what to do"},
	{exitUsage, "usage", "the command line is wrong; nothing was read"},
	{exitNoMatch, "no match", "no match: no such job, queue, run or schedule, or none that the\nfilters select"},
	{exitLocked, "locked or unreachable", "another process has the file open and does not serve it, nothing\nanswers at the address, or the command needs a running app"},
	{exitDamaged, "damage, or a check failed", "damaged data was found, and the readable part was printed; or a check\nfailed, a limit was exceeded, or code does not match the journal of a run"},
	{exitConflict, "conflict", "the job is in the wrong state, its deadline has passed, or another job\nhas its ID or its unique key; the run has ended, or another has its ID"},
	{exitFormat, "other format", "the file has the format of another release; nothing was changed"},
	{exitDead, "the job is dead", "the job that the command waited for is dead"},
	{exitInterrupted, "interrupted", "interrupted; the message reports how much was done"},
}

// exitTopic returns the text of 'help exit-codes'.
func exitTopic() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, e := range exitMeans {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, strings.ReplaceAll(e.long, "\n", "\n       "))
	}
	b.WriteString("\n" + wrapped(strings.Fields("A command for several jobs or runs changes those it can; its exit code is that of the first failure."), columns) + "\n")
	return b.String()
}

// exitNames returns the exit codes in the help of a command: the common ones and its own.
func exitNames(c *cobra.Command) string {
	codes := append(strings.Fields(strings.Trim(c.Annotations[exitCodes], "[]")), "0", "1", "2", "130")
	var names []string
	for _, e := range exitMeans {
		if slices.Contains(codes, strconv.Itoa(e.code)) {
			names = append(names, fmt.Sprintf("%d %s,", e.code, e.short))
		}
	}
	return strings.TrimSuffix(wrapped(names, 66), ",")
}
