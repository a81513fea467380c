// Checksum writes the SHA-256 of every regular file below a folder into a manifest for sha256sum -c.
// Each file is a job. Kill the program at any moment, start it again with the same arguments, and it
// continues.
//
//	go run ./examples/checksum [-state DIR] [-j N] DIR
//
// The state folder holds the queue, the sums so far and, at the end, the manifest. A file that cannot
// be read is retried with backoff; then its job is dead and reported. Exit codes: 0 the manifest is
// complete, 1 files are missing from it or the program failed, 2 usage, 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/worker"
)

// File is the payload: the path of a file in the manifest.
type File struct{ Path string }

var sumFile = pawl.Define[File]("checksum.file", pawl.MaxRetries(3),
	pawl.Backoff(pawl.Exponential(100*time.Millisecond, 2).Jitter(pawl.DefaultJitter)))

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("checksum", flag.ContinueOnError)
	flags.SetOutput(stderr)
	state := flags.String("state", "checksum.state", "`folder` for the queue, the sums so far and the manifest")
	slots := flags.Int("j", runtime.GOMAXPROCS(0), "number of files to read at once")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: checksum [-state DIR] [-j N] DIR")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() != 1 || *slots < 1 {
		flags.Usage()
		return 2
	}
	r := &runner{state: *state, root: flags.Arg(0), slots: *slots, stdout: stdout, stderr: stderr}
	failed, err := r.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; start it again with the same arguments to continue")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	case failed:
		return 1
	}
	return 0
}

// runner is one run of the program.
type runner struct {
	state, root    string
	slots          int
	stdout, stderr io.Writer
}

func (r *runner) manifestPath() string { return filepath.Join(r.state, "manifest.sha256") }

// run performs three steps. Each of them continues where an earlier run stopped:
//
//  1. plan: enqueue a job for every file, then mark the plan as complete
//  2. sum: each job adds a line to the sums, synced before the job is acked
//  3. write the manifest atomically
func (r *runner) run(ctx context.Context) (failed bool, err error) {
	if info, err := os.Stat(r.root); err != nil {
		return false, err
	} else if !info.IsDir() {
		return false, fmt.Errorf("%s is not a folder", r.root)
	}
	if err := os.MkdirAll(r.state, 0o700); err != nil {
		return false, err
	}
	q, err := r.openQueue()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	sums, err := openSums(filepath.Join(r.state, "sums.log"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, sums.Close()) }()

	p, err := r.loadPlan()
	if err != nil {
		return false, err
	}
	if done, err := r.finished(ctx, q); err != nil || done {
		if done {
			fmt.Fprintf(r.stdout, "already finished: %d files in %s; remove %s to start over\n",
				len(sums.byPath), r.manifestPath(), r.state)
		}
		return r.report(ctx, q, p, err)
	}
	if n := len(sums.byPath); n > 0 {
		fmt.Fprintf(r.stderr, "continuing: %d files are done\n", n)
	}
	if !p.Complete {
		if err := r.enqueueAll(ctx, q, p, sums); err != nil {
			return false, err
		}
	}
	if err := r.work(ctx, q, p, sums); err != nil {
		return false, err
	}
	if err := writeManifest(r.manifestPath(), sums.byPath); err != nil {
		return false, err
	}
	fmt.Fprintf(r.stdout, "%d files in %s\n", len(sums.byPath), r.manifestPath())
	return r.report(ctx, q, p, nil)
}

func (r *runner) openQueue() (*bolt.Queue, error) {
	return bolt.Open(filepath.Join(r.state, "queue.db"), &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes, // killing the program is not the fault of a file
		Logger:     hclog.NewNullLogger(),
	})
}

// finished reports whether the manifest exists and no job is left; an operator may have retried a dead
// one.
func (r *runner) finished(ctx context.Context, q *bolt.Queue) (bool, error) {
	if _, err := os.Stat(r.manifestPath()); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	left, _, err := count(ctx, q)
	return left == 0, err
}

// count returns the number of live and of dead jobs.
func count(ctx context.Context, q *bolt.Queue) (left, dead int, err error) {
	stats, err := q.Stats(ctx)
	for _, c := range stats.Queues {
		left += c.Ready + c.Delayed + c.Leased
		dead += c.Dead
	}
	return left, dead, err
}

func (r *runner) work(ctx context.Context, q *bolt.Queue, p *plan, sums *sums) error {
	w := worker.New(q, &worker.Options{Concurrency: r.slots, Logger: hclog.NewNullLogger()})
	worker.Handle(w, sumFile, func(ctx context.Context, job *pawl.Job[File]) error {
		sum, err := sha256Of(ctx, job.Args.Path)
		if err != nil {
			return err
		}
		return sums.Add(job.Args.Path, sum)
	})
	stopProgress := showProgress(ctx, r.stderr, p.Files, q)
	defer stopProgress()
	return w.Drain(ctx, pawl.WaitFinished)
}

// report prints what is missing from the manifest.
func (r *runner) report(ctx context.Context, q *bolt.Queue, p *plan, err error) (failed bool, _ error) {
	if err != nil {
		return false, err
	}
	for _, folder := range p.Unreadable {
		fmt.Fprintf(r.stderr, "folder not read: %s\n", folder)
		failed = true
	}
	for job, err := range dlq.List(ctx, q, pawl.Filter{}) {
		if err != nil {
			return false, err
		}
		file, err := sumFile.Job(job)
		if err != nil {
			return false, err
		}
		fmt.Fprintf(r.stderr, "file not read: %q after %d attempts: %s\n",
			file.Args.Path, job.Attempts, job.History[len(job.History)-1].Error)
		failed = true
	}
	if failed {
		fmt.Fprintf(r.stderr, "to retry the files: jobctl --db %s dead retry --all -y, then start this again\n",
			filepath.Join(r.state, "queue.db"))
	}
	return failed, nil
}
