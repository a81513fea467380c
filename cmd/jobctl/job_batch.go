package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
)

// A portion of a batch is stored completely or not at all. It stays within the limits of one
// commit, and of one message to an app.
const (
	portionJobs  = 1000
	portionBytes = 512 << 10
)

// runBatch reads the lines twice: first to check all of them, then to store them.
func (e *enqueuing) runBatch(ctx context.Context, a *app, args []string) error {
	if len(args) > 1 {
		return usage("job enqueue", "unexpected argument %q; with --batch the lines have the kinds", args[1])
	}
	name := "-"
	if len(args) == 1 {
		file, isFile := strings.CutPrefix(args[0], "@")
		if !isFile && file != "-" {
			return usage("job enqueue", "%q is not a source of lines; --batch takes - or @FILE", file)
		}
		name = file
	}
	from, err := a.input(name)
	if err != nil {
		return err
	}
	defer from.Close()
	count := 0
	queues := make(map[string]bool)
	err = e.eachLine(from, func(job *pawl.Envelope) error {
		count++
		queues[job.Queue] = true
		return nil
	})
	if err != nil {
		return &failure{exitError, err.Error(), "Nothing was stored."}
	}
	if count == 0 {
		return &failure{exitNoMatch, "there are no lines to enqueue", ""}
	}
	names := slices.Sorted(maps.Keys(queues))
	if e.dry {
		if err := e.checkDry(ctx, a, names...); err != nil {
			return err
		}
		return e.reportAll(a, count)
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return e.storeAll(ctx, a, from, count, names)
}

// reportAll prints what a dry run would store: nothing has an ID yet.
func (e *enqueuing) reportAll(a *app, count int) error {
	if a.people() || a.flags.output == "ids" {
		a.say("%s would be added; nothing was changed", plural(count, "job"))
		return nil
	}
	out := &listing{app: a}
	for range count {
		if err := out.add(item{json: e.view(pawl.Enqueued{})}); err != nil {
			return err
		}
	}
	out.close()
	return nil
}

// storeAll stores the lines in portions, and prints the IDs of each.
func (e *enqueuing) storeAll(ctx context.Context, a *app, from io.Reader, count int, queues []string) error {
	out := &listing{app: a}
	if a.people() {
		a.flags.output = "ids"
	}
	bar := a.bar("enqueuing", progress.Unit("jobs"))
	last, existing := 0, 0 // the size of the last portion, and how many existed already
	err := a.with(ctx, func(queue admin.Admin) error {
		defer bar.Stop()
		if err := e.checkQueues(ctx, queue, queues...); err != nil {
			return err
		}
		return e.inPortions(ctx, from, func(portion []*pawl.Envelope) error {
			last = len(portion)
			// It must be known whether a portion was stored, so an interruption waits for the
			// answer.
			done, err := queue.Enqueue(context.WithoutCancel(ctx), portion...)
			if err != nil {
				return err
			}
			for _, stored := range done {
				if stored.Existing {
					existing++
				}
				if err := out.add(item{id: stored.ID.String(), json: e.view(stored)}); err != nil {
					return err
				}
			}
			bar.Set(int64(out.count), int64(count))
			return nil
		})
	})
	if err == nil || out.count > 0 { // for an unreachable queue, print no empty list
		out.close()
	}
	if f := new(failure); out.count == 0 && errors.As(err, &f) {
		return err
	}
	if err != nil {
		f := e.explained(a, err)
		perhaps := ""
		if errors.Is(err, pawl.ErrUnknownOutcome) || ctx.Err() == nil && uncertain(err) {
			perhaps = fmt.Sprintf("perhaps the next %d too, ", last)
		}
		f.text += fmt.Sprintf("; the first %d of %d jobs are stored, %sthe rest are not", out.count, count, perhaps)
		return partial{f}
	}
	noteExisting(a, existing)
	return nil
}

// noteExisting prints how many of the jobs existed already.
func noteExisting(a *app, existing int) {
	if existing > 0 {
		a.say("note: %d of them %s not added: another job has the unique key", existing, wasWere(existing))
	}
}

// inPortions passes the jobs of all lines to store. It checks for an interruption between two
// portions.
func (e *enqueuing) inPortions(ctx context.Context, from io.Reader, store func([]*pawl.Envelope) error) error {
	var portion []*pawl.Envelope
	size := 0
	err := e.eachLine(from, func(job *pawl.Envelope) error {
		if len(portion) == portionJobs || len(portion) > 0 && size+len(job.Payload) > portionBytes {
			if err := store(portion); err != nil {
				return err
			}
			portion, size = portion[:0], 0
		}
		portion, size = append(portion, job), size+len(job.Payload)
		return ctx.Err()
	})
	if err == nil && len(portion) > 0 {
		err = store(portion)
	}
	return err
}

// eachLine makes a job of every nonempty line.
func (e *enqueuing) eachLine(from io.Reader, do func(*pawl.Envelope) error) error {
	return eachText(from, func(n int, text []byte) error {
		line := e.line.clone()
		if err := decodeLine(text, &line); err != nil {
			return atLine(n, err)
		}
		job, err := line.checked()
		if err != nil {
			return atLine(n, err)
		}
		return do(job)
	})
}

// eachText calls do for every nonempty line, with its number.
func eachText(from io.Reader, do func(n int, text []byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxArgument)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := do(n, lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return atLine(n, fmt.Errorf("it has %s or more; enqueue a reference to the data instead", plain.Size(maxArgument)))
	case err != nil:
		return fmt.Errorf("read the lines: %w", err)
	}
	return nil
}

// atLine adds the number of a line to an error.
func atLine(n int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %w", n, err)
}
