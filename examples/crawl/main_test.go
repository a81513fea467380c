package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// asChild makes the test binary behave as the program itself, so that it can be killed: when
// it has read as many documents as the value says.
const asChild = "CRAWL_TEST_CHILD"

func TestMain(m *testing.M) {
	if n, err := strconv.ParseInt(os.Getenv(asChild), 10, 64); err == nil {
		p := &program{around: []workflow.Middleware{killedAfter(n)}}
		os.Exit(p.main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// killedAfter kills the process as kill -9 does once n documents were read, and writes down
// each that it begins with to the standard output.
func killedAfter(n int64) workflow.Middleware {
	var read atomic.Int64
	return func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			if !strings.HasSuffix(s.Step, "/read") {
				return next(ctx, s)
			}
			fmt.Println(s.Step)
			v, err := next(ctx, s)
			if read.Add(1) == n {
				if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
					panic("cannot be killed")
				}
				select {}
			}
			return v, err
		}
	}
}

// library is the real documents of this library.
var library = []string{filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "docs")}

// here runs the program in this process.
func here(t *testing.T, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = new(program).main(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// Rule: the report is that of every document, counted by itself, whatever the number that is
// read at a time; and all links of the library's documents lead somewhere.
func TestReport(t *testing.T) {
	paths, err := documents(library)
	require.NoError(t, err)
	require.Greater(t, len(paths), 3)
	words := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		words += len(strings.Fields(string(b)))
	}
	var reports []string
	for _, atOnce := range []string{"1", "3", "100"} {
		args := append([]string{"-db", filepath.Join(t.TempDir(), "crawl.db"), "-j", atOnce}, library...)
		code, out, errs := here(t, args...)
		require.Equal(t, 0, code, out+errs)
		require.Regexp(t, fmt.Sprintf(`(?m)^ *%d words +\d+ links  in %d documents$`, words, len(paths)), out)
		for _, path := range paths {
			require.Contains(t, out, "  "+path+"\n")
		}
		reports = append(reports, out)
		_, again, _ := here(t, args...)
		require.Equal(t, out, again)
	}
	require.Equal(t, reports[0], reports[1])
	require.Equal(t, reports[0], reports[2])
}

// Rule: no more documents are read at a time than was said, and as many as that.
func TestBounded(t *testing.T) {
	const atOnce = 3
	var reading, most atomic.Int64
	full := make(chan struct{})
	k := workflowtest.New(t, &workflowtest.Options{Engine: workflow.Options{Middleware: []workflow.Middleware{
		func(next workflow.StepFunc) workflow.StepFunc {
			return func(ctx context.Context, s workflow.StepInfo) (any, error) {
				if s.Step == "list" {
					return next(ctx, s)
				}
				n := reading.Add(1)
				defer reading.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if n == atOnce {
					select {
					case <-full:
					default:
						close(full)
					}
				}
				<-full // the first wait until as many are there as there can be
				return next(ctx, s)
			}
		},
	}}}, crawl)
	_, err := workflowtest.Start(k, crawl, "bounded", Corpus{Paths: library, AtOnce: atOnce}).Result()
	require.NoError(t, err)
	require.EqualValues(t, atOnce, most.Load())
}

// Rule: killed in the middle and started again it comes to the same report, and reads only
// what it had not: at most the documents that were being read are read twice.
func TestKilled(t *testing.T) {
	const atOnce = 2
	paths, err := documents(library)
	require.NoError(t, err)
	args := append([]string{"-j", strconv.Itoa(atOnce), "-db"}, filepath.Join(t.TempDir(), "whole.db"))
	_, want, _ := here(t, append(args, library...)...)
	args[3] = filepath.Join(t.TempDir(), "killed.db")

	begun := make(map[string]int)
	kills := 0
	for range len(paths) + 1 {
		cmd := exec.Command(os.Args[0], append(args, library...)...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asChild, atOnce+1))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		report := ""
		for line := range strings.Lines(string(out)) {
			if step := strings.TrimSpace(line); strings.HasSuffix(step, "/read") {
				begun[step]++
			} else {
				report += line
			}
		}
		if cmd.ProcessState.ExitCode() == -1 {
			kills++
			continue
		}
		require.NoError(t, err, errs.String())
		require.Equal(t, want, report)
		break
	}
	require.Positive(t, kills)
	require.Len(t, begun, len(paths))
	all := 0
	for _, times := range begun {
		all += times
	}
	require.LessOrEqual(t, all, len(paths)+atOnce*kills)
}

// Rule: wherever the process dies, the report is the same.
func TestCrashes(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.md":     "three [words](b.md) `[no](link)`\n```\n[nor](this)\n```\n",
		"b.md":     "see [a](a.md#top), [nothing](c.md) and [far](https://example.com/x)\n",
		"other.go": "no document",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	a, b := filepath.Join(folder, "a.md"), filepath.Join(folder, "b.md")
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		k := workflowtest.New(t, &workflowtest.Options{At: at}, crawl)
		report, err := workflowtest.Start(k, crawl, "x", Corpus{Paths: []string{folder}, AtOnce: 1}).Result()
		require.NoError(t, err)
		require.Equal(t, Report{Words: 11, Links: 4, Broken: 1, Documents: []Document{
			{Path: a, Words: 6, Links: 1}, {Path: b, Words: 5, Links: 3, Broken: []string{"c.md"}},
		}}, report)
	})
}

// Rule: a document that cannot be read does not keep the others from it, and is named.
func TestUnreadable(t *testing.T) {
	paths, err := documents(library)
	require.NoError(t, err)
	branch := "document/" + strings.ReplaceAll(paths[1], "/", "%2F")
	k := workflowtest.New(t, nil, crawl)
	k.Stub(branch+"/read", func(context.Context) (any, error) { return nil, errors.New("bad sector") })
	run := workflowtest.Start(k, crawl, "x", Corpus{Paths: library, AtOnce: 2})
	_, err = run.Result()
	require.ErrorContains(t, err, fmt.Sprintf("branch %q: step %q failed 4 times: bad sector", branch, branch+"/read"))
	require.Equal(t, 1+len(paths)-1+4, k.Attempts("list")+k.Attempts("read"))
}

// Rule: bad input gets a clear error and the right exit code, as do broken links.
func TestBadInput(t *testing.T) {
	db := filepath.Join(t.TempDir(), "crawl.db")
	code, _, _ := here(t, "-db", db, "-j", "0")
	require.Equal(t, 2, code)
	code, _, errs := here(t, "-db", db, "-name", "none", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "none")
	file := filepath.Join(t.TempDir(), "x.md")
	require.NoError(t, os.WriteFile(file, []byte("[y](y.md)"), 0o600))
	code, out, _ := here(t, "-db", db, file)
	require.Equal(t, 1, code)
	require.Contains(t, out, file+": broken link to y.md\n")
	code, _, errs = here(t, "-db", db, "-j", "2", file)
	require.Equal(t, 1, code)
	require.Contains(t, errs, `crawl "documents" has other arguments`)
}
