package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// Rule: columns are aligned whatever they contain: a character may be two columns wide, or none.
func TestTableOfWideCharacters(t *testing.T) {
	var b bytes.Buffer
	tab := table{out: bufio.NewWriter(&b), columns: []column{{title: "QUEUE"}, {title: "DEAD", right: true}, {title: "STATE"}}}
	tab.add("mail", "3", "running")
	tab.add("日本語", "12", "running")
	tab.add("🎉é", "1", "PAUSED")
	tab.flush()
	require.NoError(t, tab.out.Flush())
	require.Equal(t, strings.Join([]string{
		"QUEUE   DEAD  STATE",
		"mail       3  running",
		"日本語    12  running",
		"🎉é        1  PAUSED",
		"",
	}, "\n"), b.String())
}

// Rule: a failure that many jobs share is reported once with their number, and the failure of an
// app that went away in the middle of a change says that the change may have been made.
func TestReasonsAreFolded(t *testing.T) {
	gone := fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, admin.ErrUnreachable)
	rs := results{{id: id(1)}, {id: id(2), err: gone}, {id: id(3), err: gone}, {id: id(4), err: errNotTried}}
	a := &app{stdout: bufio.NewWriter(&bytes.Buffer{}), flags: shared{output: "table"}}
	c := &change{app: a, verb: verb{did: "retried", miss: "not_dead"}, chosen: true, results: rs}
	f := a.failure(c.report(t.Context()))
	require.Equal(t, exitError, f.code)
	require.Equal(t, []string{
		gone.Error() + " (2 jobs)",
		"and 1 job not tried after that",
		"It may have been done: look before you run the command again.",
		"'jobctl job list' shows the state of the jobs.",
		"Then run the command again: it finds the rest.",
	}, strings.Split(f.next, "\n"))

	c.chosen = false
	require.Contains(t, a.failure(c.report(t.Context())).next, "'jobctl job show' shows the state of each")

	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	f = a.failure(c.report(interrupted))
	require.Equal(t, exitInterrupted, f.code)
	require.Equal(t, []string{
		gone.Error() + " (2 jobs)",
		"It may have been done: look before you run the command again.",
		"1 job not tried; run the command again for the rest.",
	}, strings.Split(f.next, "\n"))
}

// Rule: a user who may not create a file is advised to use another folder, and one who may not
// read the queue to be another user.
func TestPermissionOfWhat(t *testing.T) {
	a := &app{flags: shared{db: "app.db"}}
	out := fmt.Errorf("create the file in folder out: %w", fs.ErrPermission)
	require.Equal(t, "Name a file in a folder that this user may write to.", a.failure(newFile("out/b.db", out)).next)
	full := fmt.Errorf("write: %w", syscall.ENOSPC)
	require.Contains(t, a.failure(newFile("out/b.db", full)).text, "out/b.db: write: ")
	require.Contains(t, a.failure(newFile("out/b.db", full)).next, "Free space on that disk")
	require.Contains(t, a.failure(full).next, "Free space on the disk")
	in := fmt.Errorf("open queue app.db to read: %w", fs.ErrPermission)
	require.Equal(t, "Run jobctl as the app's user.", a.failure(newFile("out/b.db", in)).next)
}

// Rule: the advice for a file that another jobctl has is to wait; it does not mention an app.
func TestLockedByJobctl(t *testing.T) {
	a := &app{flags: shared{db: "app.db"}}
	f := a.failure(fmt.Errorf("open queue app.db: %w (pid 4121, jobctl); stop it, or open another file", bolt.ErrLocked))
	require.Equal(t, exitLocked, f.code)
	require.Equal(t, "app.db is locked by pid 4121 (jobctl)", f.text)
	require.Contains(t, f.next, "Another jobctl has the file open")
}

// Rule: durations in lines for people have few digits.
func TestRoughly(t *testing.T) {
	for given, want := range map[time.Duration]string{
		0: "0s", 7: "7ns", 283853: "283.85µs", 20529385: "20.53ms", 1234567890: "1.23s", 90*time.Second + 1: "1m30s",
	} {
		require.Equal(t, want, roughly(given))
	}
}
