package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

func jobShowCommand() command {
	return command{words: "job show", args: "ID [--payload FORM]", short: "everything about one job", file: true, ids: true,
		text: `Prints a job with its payload and every failed run that the file keeps.

  --payload FORM  auto (default): JSON when the payload is MessagePack, else hex
                  json: JSON or nothing; hex: always hex; none: its size alone
                  What is printed is cut at 4 KiB, -o json prints all of it.

Example:
  jobctl --db jobs.db job show 01902a3b-7a40-7000-8000-0123456789ab

JSON: one object with
` + jobFields + `  payload: size_bytes, encoding (messagepack or unknown), value (the payload as
           JSON), hex; --payload says which of value and hex are not null
  history: a list of attempt, at (a time), error; the oldest first
  history_dropped: how many failed runs the file no longer has
In a value MessagePack's bytes are base64 and its keys are texts; hex is exact.
`,
		setup: func(fs *flag.FlagSet) action {
			form := "auto"
			fs.Func("payload", "", oneOf(&form, "auto", "json", "hex", "none"))
			return func(a *app, args []string) error { return showJob(a, args, form) }
		},
	}
}

func showJob(a *app, args []string, form string) error {
	switch {
	case len(args) == 0:
		return usage("job show", "no job was named; add its ID")
	case len(args) > 1:
		return usage("job show", "%d IDs were given, one is shown at a time", len(args))
	}
	id, err := pawl.ParseID(args[0])
	if err != nil {
		return usage("job show", "%s", err)
	}
	r, err := bolt.OpenReader(a.flags.db)
	if err != nil {
		return err
	}
	defer r.Close()
	e, err := r.Job(context.Background(), id)
	if err != nil {
		return err
	}
	if a.flags.output != "table" {
		return a.print(detailOf(e, viewOfPayload(e.Payload, form)))
	}
	now := a.now()
	a.showFacts(e, now)
	a.showHeaders(e.Headers)
	a.showPayload(e.Payload, form)
	a.showHistory(e, now)
	return nil
}

// fact prints one line of what is known about a job.
func (a *app) fact(name, format string, args ...any) {
	fmt.Fprintf(a.stdout, "%-11s %s\n", name, fmt.Sprintf(format, args...))
}

func (a *app) showFacts(e *pawl.Envelope, now time.Time) {
	a.fact("id", "%s", e.ID)
	a.fact("kind", "%s", escape(e.Kind))
	if a.fact("queue", "%s", escape(e.Queue)); e.Origin != e.Queue {
		a.fact("origin", "%s", escape(e.Origin))
	}
	a.fact("state", "%s", stateOf(e))
	if e.Death != nil {
		a.fact("reason", "%s", escape(string(e.Death.Reason)))
		a.fact("died", "%s", moment(now, e.Death.At))
	}
	a.fact("attempts", "%d of %d", e.Attempts, e.MaxRetries+1)
	a.fact("failures", "%d", e.Failures)
	a.fact("crashes", "%d", e.Crashes)
	a.fact("priority", "%d", e.Priority)
	a.fact("sequence", "%d", e.Seq)
	a.fact("created", "%s", moment(now, e.Created))
	a.fact("not before", "%s", moment(now, e.NotBefore))
	if e.State == pawl.Leased {
		a.fact("leased", "%s", moment(now, e.LeasedSince))
	}
	timeout, policy := "the worker's", "the kind's or the worker's"
	if e.Timeout != 0 {
		timeout = e.Timeout.String()
	}
	if e.Policy != nil {
		policy = e.Policy.String()
	}
	a.fact("timeout", "%s", timeout)
	a.fact("policy", "%s", escape(policy))
	if !e.Deadline.IsZero() {
		a.fact("deadline", "%s", moment(now, e.Deadline))
	}
	if e.UniqueKey != "" {
		a.fact("unique", "%s", escape(e.UniqueKey))
	}
	if e.IdempotencyKey != "" {
		a.fact("idempotency", "%s", escape(e.IdempotencyKey))
	}
	if e.KeyID != "" {
		a.fact("signed by", "key %s", escape(e.KeyID))
	}
	if !e.Completed.IsZero() {
		a.fact("completed", "%s", moment(now, e.Completed))
	}
}

// stateOf is the state with what it means for a job in a file at rest.
func stateOf(e *pawl.Envelope) string {
	switch {
	case e.State == pawl.Leased && e.Cancelled:
		return "leased and cancelled; its process is gone, the next open makes it a dead letter"
	case e.State == pawl.Leased:
		return "leased; its process is gone, the next open makes it ready"
	case e.State == pawl.Parked:
		return "parked; it waits for a worker that handles its kind"
	}
	return string(e.State)
}

func (a *app) showHeaders(headers map[string]string) {
	if len(headers) == 0 {
		a.fact("headers", "none")
		return
	}
	a.fact("headers", "%d", len(headers))
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(a.stdout, "  %s: %s\n", escape(key), escape(headers[key]))
	}
}

func (a *app) showHistory(e *pawl.Envelope, now time.Time) {
	if e.Failures == 0 {
		a.fact("history", "no failed run")
		return
	}
	text := plural(e.Failures, "failed run")
	if n := dropped(e); n > 0 {
		text += fmt.Sprintf(", %d of them dropped from the file", n)
	}
	a.fact("history", "%s", text)
	for _, f := range e.History {
		fmt.Fprintf(a.stdout, "  attempt %d  %s\n", f.Attempt, moment(now, f.At))
		message, whole := clip(f.Error, pawl.MaxErrorText)
		if !whole {
			message += fmt.Sprintf("\n(cut at %s of %s)", byteSize(pawl.MaxErrorText), byteSize(int64(len(f.Error))))
		}
		fmt.Fprintf(a.stdout, "    %s\n", escapeLines(message, "    "))
	}
}
