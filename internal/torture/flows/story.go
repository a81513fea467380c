package flows

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/workflow"
)

// story is what the processes of one file reported, and the content of the file after each.
type story struct {
	started map[string]string          // the given ID, by run
	effects map[string]uint64          // result of the last effect, by key
	sent    map[string]map[string]bool // signals, by run
	results map[string]runEnd          // the end that a process reported, by run
	open    []string                   // runs that had not ended when the file was last looked at
}

type runEnd struct {
	status workflow.Status
	value  uint64
}

func newStory() *story {
	return &story{started: make(map[string]string), effects: make(map[string]uint64),
		sent: make(map[string]map[string]bool), results: make(map[string]runEnd)}
}

// hear processes one line.
func (s *story) hear(line string) error {
	words := strings.Fields(line)
	if len(words) < 3 {
		if line == harness.Up {
			return nil
		}
		return fmt.Errorf("the process said %q", line)
	}
	switch words[0] {
	case "started":
		if id, known := s.started[words[1]]; known && id != words[2] {
			return differ("run %s was started as %s and as %s", words[1], id, words[2])
		}
		s.started[words[1]] = words[2]
	case "effect":
		n, err := strconv.ParseUint(words[2], 10, 64)
		s.effects[words[1]] = n
		return err
	case "sent":
		if s.sent[words[1]] == nil {
			s.sent[words[1]] = make(map[string]bool)
		}
		s.sent[words[1]][words[2]] = true
	case "result":
		n, err := strconv.ParseUint(words[3], 10, 64)
		if err != nil {
			return err
		}
		now := runEnd{workflow.Status(words[2]), n}
		if before, known := s.results[words[1]]; known && before != now {
			return differ("run %s ended as %v and as %v", words[1], before, now)
		}
		s.results[words[1]] = now
	default:
		return differ("%s", line)
	}
	return nil
}

// after opens the file of an ended process, and compares it with the story.
func (s *story) after(ctx context.Context, path string, lines []string) error {
	for _, line := range lines {
		if strings.HasPrefix(line, "twice ") {
			return differ("%s", line)
		}
		if err := s.hear(line); err != nil {
			return err
		}
	}
	q, err := bolt.Open(path, oracle.Options())
	if err != nil {
		return fmt.Errorf("cannot open the file of a killed process: %w", err)
	}
	f := &file{story: s, q: q, r: workflow.Read(q)}
	return errors.Join(f.compare(ctx), q.Close())
}

// allEnded requires that nothing was left open.
func (s *story) allEnded() error {
	if len(s.open) > 0 {
		return differ("%d runs have not ended: %v", len(s.open), s.open)
	}
	return nil
}

// file is what is compared with a story.
type file struct {
	*story
	q   *bolt.Queue
	r   *workflow.Reader
	app map[string]uint64
}

func (f *file) compare(ctx context.Context) error {
	if err := errors.Join(f.q.Check(ctx), f.r.Check(ctx)); err != nil {
		return err
	}
	if err := f.q.View(ctx, func(tx *bbolt.Tx) error { f.app = rowsOfApp(tx); return nil }); err != nil {
		return err
	}
	f.open = nil
	found := make(map[string]bool)
	err := eachRun(ctx, f.r, func(i workflow.Info) error {
		found[i.Run.String()] = true
		if err := f.run(ctx, i); err != nil {
			return fmt.Errorf("run %s, %q, %s: %w", i.Run, i.ID, i.Status, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for run, id := range f.started {
		if !found[run] {
			return differ("run %s was started as %s, and is not there", run, id)
		}
	}
	return nil
}

// eachRun calls do for each run of a list.
func eachRun(ctx context.Context, of interface {
	List(ctx context.Context, f workflow.Filter, after string, n int) (workflow.Listing, error)
}, do func(workflow.Info) error) error {
	for after := ""; ; {
		list, err := of.List(ctx, workflow.Filter{}, after, 500)
		if err != nil {
			return err
		}
		for _, i := range list.Runs {
			if err := do(i); err != nil {
				return err
			}
		}
		if after = list.Next; after == "" {
			return nil
		}
	}
}

// run compares one run with the story.
func (f *file) run(ctx context.Context, i workflow.Info) error {
	_, err := f.q.Job(ctx, i.Run)
	switch {
	case i.Status.Ended() && !errors.Is(err, pawl.ErrNotFound):
		return differ("it has ended, and has a job: %v", err)
	case !i.Status.Ended() && err != nil:
		return differ("it has not ended, and has no job: %v", err)
	case i.Status == workflow.Blocked || i.Status == workflow.Dead:
		return differ("it is %s: %s", i.Status, i.Error)
	case !i.Status.Ended():
		f.open = append(f.open, i.ID)
	}
	if t, ok := f.results[i.Run.String()]; ok {
		if t.status != i.Status {
			return differ("it was said to have ended as %s", t.status)
		}
		if t.status == workflow.Done {
			var v uint64
			if err := f.value(f.r.Output(ctx, i.Run))(&v); err != nil || v != t.value {
				return differ("its result was said to be %d, and is %d (%v)", t.value, v, err)
			}
		}
	}
	journal, err := f.r.Journal(ctx, i.Run, true)
	if err != nil {
		return err
	}
	if err := f.steps(i, journal); err != nil {
		return err
	}
	if err := f.losers(ctx, journal); err != nil {
		return err
	}
	return f.signals(ctx, i, journal)
}

// value decodes what a reader returned.
func (f *file) value(b []byte, err error) func(v any) error {
	return func(v any) error {
		if err != nil {
			return err
		}
		return driver.DecodePayload(b, v)
	}
}

// steps compares the results in a journal with the effects: each result must be that of the
// last effect of the step, so that no effect came after it.
func (f *file) steps(i workflow.Info, journal []workflow.Entry) error {
	prefix := i.Run.String()
	if i.Restarts > 0 {
		prefix += fmt.Sprintf("@%d", i.Restarts)
	}
	done := make(map[string]bool)
	for _, e := range journal {
		key := prefix + "/" + e.Step()
		if e.State != workflow.EntryDone {
			continue
		}
		var n uint64
		switch e.Kind {
		case workflow.KindStep:
			if err := driver.DecodePayload(e.Result, &n); err != nil {
				return differ("%s has a result that cannot be read: %v", e.Step(), err)
			}
			if last, known := f.effects[key]; !known || last != n {
				return differ("%s is done with %d, and its last effect returned %d (%v)", e.Step(), n, last, known)
			}
		case workflow.KindStepTx:
			done[key] = true
			if err := driver.DecodePayload(e.Result, &n); err != nil {
				return differ("%s has a result that cannot be read: %v", e.Step(), err)
			}
			if row, ok := f.app[key]; !ok || row != n {
				return differ("%s is done with %d, and the app's row is %d (%v)", e.Step(), n, row, ok)
			}
		}
	}
	for key := range f.app {
		if strings.HasPrefix(key, prefix+"/") && !done[key] {
			return differ("the app has the row of %s, and the journal does not", key)
		}
	}
	return nil
}

// signals requires that each sent signal exists once: it is unread, or one call has
// received it. A run that has restarted has forgotten the signals that it received.
func (f *file) signals(ctx context.Context, i workflow.Info, journal []workflow.Entry) error {
	times := make(map[string]int)
	unread, err := f.r.Signals(ctx, i.Run)
	if err != nil {
		return err
	}
	count := func(b []byte) error {
		var text string
		err := driver.DecodePayload(b, &text)
		times[text]++
		return err
	}
	for _, s := range unread {
		if err := count(s.Payload); err != nil {
			return err
		}
	}
	for _, e := range journal {
		if e.Kind == workflow.KindWait && e.State == workflow.EntryDone {
			if err := count(e.Result); err != nil {
				return err
			}
		}
	}
	for text := range f.sent[i.Run.String()] {
		if times[text] == 0 && i.Restarts == 0 {
			return differ("signal %s was sent, and nobody has it", text)
		}
	}
	for text, n := range times {
		if n > 1 {
			return differ("signal %s is there %d times", text, n)
		}
	}
	return nil
}
