package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/postgres"
)

// inEnvironment runs a command line with these variables.
func inEnvironment(env map[string]string, args ...string) outcomeOf {
	var stdout, stderr bytes.Buffer
	a := &app{
		stdin: strings.NewReader(""), stdout: bufio.NewWriter(&stdout), stderr: &stderr,
		now: func() time.Time { return today }, zone: time.UTC, env: func(name string) string { return env[name] },
	}
	code := a.run(context.Background(), args)
	return outcomeOf{code, stdout.String(), stderr.String()}
}

// Rule: a flag that names the queue wins over JOBCTL_DB for every command, two of them are refused,
// and an empty one is no permission to use the variable.
func TestFlagWinsOverTheEnvironment(t *testing.T) {
	build(t, everyState)
	for _, db := range []string{"postgres://app:hunter2@localhost:1/db", "other.db"} {
		env := map[string]string{"JOBCTL_DB": db}
		for _, line := range []string{"stats", "db check", "db backup new.db", "db info", "export --to new.jsonl", "job show " + id(1).String()} {
			of := inEnvironment(env, words("--addr unix:///none.sock "+line)...)
			require.Equal(t, exitLocked, of.code, "%s: %s", line, of.stderr)
			require.Contains(t, of.stderr, "unix:///none.sock", line)
			require.NotContains(t, of.stderr, "localhost", line)
		}
		of := inEnvironment(env, words("--addr unix:///none.sock db compact new.db")...)
		require.Contains(t, of.stderr, "only the file of a stopped app can be compacted")
		for _, line := range []string{"stats", "db check", "db info", "export --to new.jsonl", "work --http --once -q none"} {
			of := inEnvironment(env, words("--db app.db "+line)...)
			require.NotContains(t, of.stderr, "it is for files", line)
			require.NotContains(t, of.stderr, "localhost", line)
			require.NotContains(t, of.stderr, "no such file", line)
		}
		for _, line := range []string{"--db app.db --addr unix:///none.sock stats", "--db= stats", "--addr= stats", "--addr= --db app.db stats"} {
			of := inEnvironment(env, words(line)...)
			require.Equal(t, exitUsage, of.code, "%s: %s", line, of.stderr)
		}
	}
	require.Equal(t, exitOK, inEnvironment(map[string]string{"JOBCTL_DB": "app.db"}, "stats").code, "without a flag the variable counts")
}

// Rule: advice about files is given for files alone: not for a server, and not for the file of an
// app elsewhere.
func TestAdviceFitsTheQueue(t *testing.T) {
	errs := []error{
		postgres.ErrUnavailable, postgres.ErrPermission, postgres.ErrNotQueue, postgres.ErrReadOnly, postgres.ErrOlderFormat,
		admin.ErrUnreachable, admin.ErrDenied, fs.ErrNotExist, fs.ErrPermission, pawl.ErrNotFound, admin.ErrWorkflowJob, pawl.ErrConflict,
		pawl.ErrCorrupt, pawl.ErrUnknownOutcome, pawl.ErrPoisoned, pawl.ErrNewerFormat, context.DeadlineExceeded, context.Canceled,
		&admin.UnsupportedError{Operation: "events"},
	}
	onFile := &app{flags: shared{db: "app.db"}}
	for name, a := range map[string]*app{
		"app":    {flags: shared{addr: "https://app.example.com"}},
		"server": {flags: shared{db: "postgres://localhost/db", server: "postgres://localhost/db"}},
	} {
		advice := []string{a.failure(a.damaged(&damage{count: 1}, "job")).next}
		for _, err := range errs {
			f := a.failure(fmt.Errorf("read: %w", err))
			require.NotContains(t, f.text, "no such file", "%s: %v", name, err)
			require.Equal(t, onFile.failure(err).code, f.code, "the exit code of %v does not depend on the place", err)
			advice = append(advice, f.next)
		}
		for _, text := range advice {
			for _, word := range []string{" file", "salvage", "db check", "db backup", "db compact", "Stop the app"} {
				require.NotContains(t, strings.ReplaceAll(text, "a passfile", ""), word, name)
			}
		}
	}
	require.Contains(t, onFile.failure(pawl.ErrCorrupt).next, "jobctl db salvage")
	require.Contains(t, onFile.failure(fs.ErrNotExist).text, "app.db: no such file")
	require.Contains(t, onFile.failure(onFile.damaged(&damage{count: 1}, "job")).next, "Keep a copy of the file")
}

// Rule: no message has a part of a password, also not of a password that ends the host of its URL.
func TestPasswordsThatEndAHost(t *testing.T) {
	for _, db := range []string{
		"postgres://app:12/hunter2@db/shop", "postgres://app:12?hunter2@db/shop", "postgres://app:12#hunter2@db/shop",
		"redis://:12?hunter2@db/0", "redis://app:12#hunter2@db/0?name=shop",
	} {
		shown, secret := shownServer(db)
		require.NotContains(t, shown, "12", db)
		require.NotContains(t, shown, "hunter2", db)
		require.True(t, secret, db)
	}
	shown, secret := shownServer("redis://db:12/0?name=shop")
	require.Equal(t, "redis://db:12/0", shown)
	require.False(t, secret)
}

// Rule: --color decides about the bars and the screen too, whatever NO_COLOR is.
func TestColorOfEverything(t *testing.T) {
	for flag, want := range map[string]bool{"always": true, "never": false, "auto": false} {
		a := &app{screen: true, bars: true, flags: shared{color: flag}, env: func(string) string { return "1" }}
		require.Equal(t, want, a.colors(), flag)
		require.Equal(t, want, a.colored(a.bars), flag)
	}
}
