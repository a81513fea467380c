package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/race"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // heaps are small, and collections took a third of the time
	answerTime, completionTime = time.Minute, time.Minute
	testscript.Main(m, map[string]func(){"jobctl": main, "pawlapp": pawlapp})
}

// Rule: every command does what its help says and ends with the exit codes that it names, with
// the file of a stopped app and with a running app.
func TestScripts(t *testing.T) {
	t.Parallel() // beside the other tests that mostly wait
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Setup: func(env *testscript.Env) error {
			env.Setenv("JOBCTL_DB", "app.db")
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			for n := range 10 {
				env.Setenv(fmt.Sprintf("JOB%d", n), id(n).String())
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "seed": seed, "app": steer, "spoil": spoilJob, "older": olderFile, "newer": newerFile, "watched": watched, "cut": cutFile, "capture": capture, "within": within, "together": together,
			"until": until, "spoilrun": spoilRun,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// scripts returns all scripts, and under the race detector some: they mainly show what one
// command prints.
func scripts(t *testing.T) (some []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for i, n := 0, race.Fewer(len(all)); i < n; i++ {
		some = append(some, all[i*len(all)/n])
	}
	return some
}

// code runs a program and requires an exit code: code 3 jobctl queue show nowhere.
func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := new(exec.ExitError)
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d: %s", got, want, ts.ReadFile("stderr"))
	}
}

// within is code with a time limit: within 1s 4 jobctl stats. It proves that a command does not
// wait, so the limit is generous.
func within(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	began := time.Now()
	code(ts, neg, args[1:])
	if took := time.Since(began); took > limit {
		ts.Fatalf("it took %v", took)
	}
}

// together runs the lines of a file at the same time, each as code does: together commands. It
// is for commands that wait for the same thing. None may print data.
func together(ts *testscript.TestScript, _ bool, args []string) {
	path, err := lookPath(ts.Getenv("PATH"), "jobctl")
	ts.Check(err)
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	problems := make([]string, len(lines))
	var all sync.WaitGroup
	for i, line := range lines {
		all.Go(func() {
			m := scriptLine.FindStringSubmatch(line)
			if m == nil {
				problems[i] = "it is no line such as: code 4 jobctl stats"
				return
			}
			var stdout, stderr bytes.Buffer
			cmd := exec.Command(path, strings.Fields(os.Expand(m[2], ts.Getenv))...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &stdout, &stderr
			cmd.Env = append(os.Environ(), "JOBCTL_DB="+ts.Getenv("JOBCTL_DB"))
			_ = cmd.Run() // its exit code is what is asked for
			if strconv.Itoa(cmd.ProcessState.ExitCode()) != m[1] || stdout.Len() > 0 {
				problems[i] = fmt.Sprintf("%v: %s%s", cmd.ProcessState, &stdout, &stderr)
			}
		})
	}
	all.Wait()
	for i, problem := range problems {
		if problem != "" {
			ts.Fatalf("%s: %s", lines[i], problem)
		}
	}
}

// seed creates a file: seed everyState app.db.
func seed(ts *testscript.TestScript, _ bool, args []string) {
	fill, ok := map[string]func(*file){"empty": nil, "everyState": everyState, "rare": rare, "large": large, "workflows": workflows, "schedules": schedules, "keys": keyed, "held": heldKey, "pooled": pooled, "full": full, "groups": jobGroups, "notes": jobNotes}[args[0]]
	if !ok {
		ts.Fatalf("there is no file %q", args[0])
	}
	buildAt(scripted{ts}, ts.MkAbs(args[1]), fill)
}

// scripted adapts a script to a test.
type scripted struct{ *testscript.TestScript }

func (s scripted) Errorf(format string, args ...any) { s.Logf(format, args...) }
func (s scripted) FailNow()                          { s.Fatalf("see above") }
func (s scripted) Helper()                           {}

// spoilJob overwrites the record of a job: spoil app.db $JOB1.
func spoilJob(ts *testscript.TestScript, _ bool, args []string) {
	var n int
	fmt.Sscanf(args[1], "019caa00-0000-7000-8000-%d", &n)
	spoil(scripted{ts}, ts.MkAbs(args[0]), id(n))
}

// olderFile creates a file of an earlier release.
func olderFile(ts *testscript.TestScript, _ bool, args []string) {
	seed(ts, false, []string{"empty", args[0]})
	ts.Check(putFormat(ts.MkAbs(args[0]), 0))
}

// newerFile creates a file of a later release with an unknown format.
func newerFile(ts *testscript.TestScript, _ bool, args []string) {
	seed(ts, false, []string{"empty", args[0]})
	ts.Check(putFormat(ts.MkAbs(args[0]), 99))
}

// putFormat writes another format into a file.
func putFormat(path string, version byte) error {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		key, value := []byte("format"), []byte{0, 0, 0, version}
		sum := crc32.Checksum(append(append([]byte(nil), key...), value...), crc32.MakeTable(crc32.Castagnoli))
		return tx.Bucket([]byte("pawl")).Bucket([]byte("meta")).Put(key, binary.LittleEndian.AppendUint32(value, sum))
	})
	return errors.Join(err, db.Close())
}

// cutFile removes the second half of a file: cut app.db.
func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	r, err := bolt.OpenReader(path)
	ts.Check(err)
	s, err := r.Stats(context.Background())
	ts.Check(err)
	ts.Check(r.Close())
	ts.Check(os.Truncate(path, s.Size/2))
}

// capture stores a part of the last output in a variable: capture CURSOR stderr '--after (\S+)'.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	m := mustCompile(ts, args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if m == nil {
		ts.Fatalf("no match for %q in %s", args[2], ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], m[1])
}

// watched runs jobctl watch, with the arguments after a file for its output, and enqueues jobs
// on the queues email and other until it ends, because its beginning cannot be observed from
// outside.
func watched(ts *testscript.TestScript, _ bool, args []string) {
	path, err := lookPath(ts.Getenv("PATH"), "jobctl")
	ts.Check(err)
	var out bytes.Buffer
	cmd := exec.Command(path, append([]string{"--db", ts.MkAbs(ts.Getenv("JOBCTL_DB")), "watch"}, args[1:]...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for range 1000 {
		select {
		case err := <-ended:
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o600))
			return
		default:
		}
		ts.Check(ts.Exec("jobctl", "job", "enqueue", "--create-queue", "greet", "-q", "other"))
		ts.Check(ts.Exec("jobctl", "job", "enqueue", "--create-queue", "greet", "-q", "email"))
	}
	_ = cmd.Process.Kill()
	ts.Fatalf("watch saw nothing: %v", <-ended)
}

// running is an app that a script has started.
type running struct {
	cmd *exec.Cmd
	in  io.Closer
}

var errNoApp = errors.New("there is no app to end")

// apps holds the apps of each script, by their files.
var apps = newRegistry()

// steer starts and ends an app: app start app.db work, app stop app.db, app freeze app.db, app
// kill app.db.
func steer(ts *testscript.TestScript, _ bool, args []string) {
	key := ts.MkAbs(args[1])
	switch args[0] {
	case "start":
		r, err := startApp(ts, args[1:])
		ts.Check(err)
		apps.put(key, r)
		ts.Defer(func() { _ = apps.end(key, func(r *running) error { return r.cmd.Process.Kill() }) })
	case "stop":
		ts.Check(apps.end(key, func(r *running) error { return r.in.Close() }))
	case "freeze":
		ts.Check(freeze(apps.get(key).cmd.Process))
	case "kill":
		ts.Check(apps.end(key, func(r *running) error { return r.cmd.Process.Signal(syscall.SIGKILL) }))
	default:
		ts.Fatalf("app start, stop, freeze or kill")
	}
}

func startApp(ts *testscript.TestScript, args []string) (*running, error) {
	path, err := lookPath(ts.Getenv("PATH"), "pawlapp")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		_ = cmd.Process.Kill()
		return nil, errors.Join(fmt.Errorf("the app did not begin: %s", stderr.String()), err, cmd.Wait())
	}
	return &running{cmd: cmd, in: in}, nil
}

func lookPath(path, name string) (string, error) {
	for _, folder := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}
