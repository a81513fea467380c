package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
)

// A portion of a batch is stored whole or not at all. It stays within what one commit, and
// one message to an app, takes.
const (
	portionJobs  = 1000
	portionBytes = 512 << 10
)

// runBatch reads the lines twice: first to check all of them, then to store them.
func (e *enqueuing) runBatch(ctx context.Context, a *app, args []string) error {
	if len(args) > 1 {
		return usage("job enqueue", "unexpected argument %q; the kinds of --batch stand in its lines", args[1])
	}
	name := "-"
	if len(args) == 1 {
		name = args[0]
		if cut, ok := bytes.CutPrefix([]byte(name), []byte("@")); ok {
			name = string(cut)
		} else if name != "-" {
			return usage("job enqueue", "%q is no source of lines; --batch takes - or @FILE", name)
		}
	}
	from, err := a.input(name)
	if err != nil {
		return err
	}
	defer from.Close()
	count := 0
	if err := e.eachLine(from, func(*pawl.Envelope) error { count++; return nil }); err != nil {
		return &failure{exitError, err.Error(), "Nothing was stored."}
	}
	if count == 0 {
		return &failure{exitNoMatch, "there is no line to enqueue", ""}
	}
	if e.dry {
		if a.people() || a.flags.output == "ids" {
			a.say("%s would be added; nothing was changed", plural(count, "job"))
			return nil
		}
		return a.print(map[string]any{"jobs": count, "dry_run": true})
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return e.storeAll(ctx, a, from, count)
}

// storeAll stores the lines in portions, and prints the IDs of each.
func (e *enqueuing) storeAll(ctx context.Context, a *app, from io.Reader, count int) error {
	out := &listing{app: a}
	if a.flags.output == "table" || a.flags.output == "wide" {
		a.flags.output = "ids"
	}
	bar := a.bar("enqueuing", progress.Unit("jobs"))
	var portion []*pawl.Envelope
	size, existing := 0, 0
	err := a.with(ctx, func(queue admin.Admin) error {
		defer bar.Stop()
		flush := func() error {
			if len(portion) == 0 {
				return nil
			}
			if err := queue.Enqueue(ctx, portion...); err != nil {
				return err
			}
			for _, job := range portion {
				if job.Existing {
					existing++
				}
				if err := out.add(item{id: job.ID.String(), json: e.view(job)}); err != nil {
					return err
				}
			}
			bar.Set(int64(out.count), int64(count))
			portion, size = portion[:0], 0
			return nil
		}
		err := e.eachLine(from, func(job *pawl.Envelope) error {
			if len(portion) == portionJobs || len(portion) > 0 && size+len(job.Payload) > portionBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			portion, size = append(portion, job), size+len(job.Payload)
			return ctx.Err()
		})
		if err == nil {
			err = flush()
		}
		return err
	})
	out.close()
	if err != nil {
		f := e.explained(a, err)
		f.text += fmt.Sprintf("; the first %d of %d jobs are stored, the others are not", out.count, count)
		return f
	}
	if existing > 0 {
		a.say("note: %d of them were not added: another job has the unique key", existing)
	}
	return nil
}

// eachLine makes a job of every line that is not empty.
func (e *enqueuing) eachLine(from io.Reader, do func(*pawl.Envelope) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxArgument)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		line, err := e.line.read(lines.Bytes())
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		job, err := line.envelope()
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := do(job); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the lines: %w", err)
	}
	return nil
}
