package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// jobFields is the part of --help that lists the fields of an admin.Job.
const jobFields = `  id, kind, queue, origin (the first queue), state, reason (of a dead job)
  priority, sequence, attempts, max_retries, failures, crashes
  created_at, not_before, deadline (times; deadline null: none)
  leased_at, died_at, completed_at (times; null in other states)
  backoff_since (a time: when the attempt failed whose retry it waits for)
  cancelled (true for a leased job that was asked to end)
  unique_key, unique_in (a list of states), idempotency_key (null: none)
  idempotency_ttl, retain (durations; null: none)
  timeout (a duration; null: the worker's)
  policy (null: the kind's or the worker's), policy_data (the same as form,
    base, multiplier, cap, jitter, full_jitter)
  key (omitted if none), cost and weight (omitted if 1)
  holds_key (no other job of its key runs until it is done; omitted if false)
  group (that it is a member of; omitted if none)
  after (the IDs of jobs that must still succeed before it starts; after_any: of
    jobs that must still end; each is omitted if there are none)
  key_id, signature (base64; null: not signed)
  headers (an object of texts), last_error
  history: a list of attempt, at (a time), error; the oldest first. Commands
    that list jobs show only the newest
  history_dropped: how many of the failures are not in it
A text that is not UTF-8 is {"base64":"..."}.
`

func (a *app) jobShowCommand() *cobra.Command {
	form := "auto"
	s := &spec{
		use: "show ID [--payload FORM]", short: "everything about one job", args: -1, ids: true,
		long: `Prints a job with its payload and every failed attempt that the file keeps. ID may
also be the beginning or the end of an ID, as 'jobctl top' shows it: at least four
digits that are unique to the job.`,
		example: "  jobctl --db jobs.db job show 01902a3b-7a40-7000-8000-0123456789ab",
		json: "one object with\n" + jobFields + `  payload: size_bytes, encoding (messagepack or unknown), value (the payload as
    JSON), base64, hex; --payload says which of those three are not null
  cursor, result: the same of what an attempt saved or returned; left out if
    there is none
  progress: done, total (0: unknown), text, at (a time) of the last attempt that
    noted some; null: none did
In a value, bytes of MessagePack are base64 and its keys are strings; hex and
base64 are exact.
`,
		exits:    []int{exitNoMatch},
		complete: a.completeIDs(pawl.States()...),
		run:      func(ctx context.Context, args []string) error { return a.showJob(ctx, args, form) },
	}
	c := a.command(s)
	forms := []string{"auto", "json", "hex", "base64", "none"}
	c.Flags().Var(oneOf(&form, forms...), "payload", `the `+"`FORM`"+` of the payload: auto (default) is JSON if it is MessagePack, else hex;
json: JSON or nothing; hex and base64: always that; none: only its size. Output is cut at 4 KiB;
-o json prints all of it`)
	return c
}

func (a *app) showJob(ctx context.Context, args []string, form string) error {
	return a.withJob(ctx, "job show", args, func(queue admin.Admin, id pawl.ID) error {
		e, err := queue.Job(ctx, id)
		switch {
		case err != nil:
			return err
		case a.flags.output == "ids":
			fmt.Fprintln(a.stdout, e.ID)
			return nil
		}
		progress, err := progressOf(ctx, queue, id)
		if err != nil {
			return err
		}
		noted, ok := progress[id]
		if !a.people() {
			v := jobView{Job: admin.JobOf(e, payloadForms[form])}
			if ok {
				v.Progress = &progressView{noted.Done, noted.Total, admin.Text(noted.Text), admin.Stamp{Time: noted.At}}
			}
			return a.print(v)
		}
		atRest := true
		if e.State == pawl.Leased {
			isLive, err := live(ctx, queue)
			if err != nil {
				return err
			}
			atRest = !isLive
		}
		a.showFacts(e, atRest)
		if ok {
			a.fact("progress", "%s, %s", plain.Text(noted.String()), relative(a.now(), noted.At))
		}
		a.showHeaders(e.Headers)
		a.showPayload("payload", e.Payload, form)
		for name, value := range map[string][]byte{"cursor": e.Cursor, "result": e.Result} { // a job has at most one of them
			if value != nil {
				a.showPayload(name, value, form)
			}
		}
		a.showHistory(e)
		return nil
	})
}

// withJob opens the queue for a command that takes one ID, which may be shortened.
func (a *app) withJob(ctx context.Context, words string, args []string, do func(admin.Admin, pawl.ID) error) error {
	switch {
	case len(args) == 0:
		return usage(words, "no job was named; add its ID")
	case len(args) > 1:
		return usage(words, "%d IDs were given; name one job", len(args))
	}
	id, err := pawl.ParseID(args[0])
	if err != nil && shortID(args[0]) == "" {
		return usage(words, "%s", err)
	}
	return a.with(ctx, func(queue admin.Admin) error {
		if id.IsZero() {
			if id, err = findJob(ctx, queue, args[0]); err != nil {
				return err
			}
		}
		return do(queue, id)
	})
}

// shortID returns a shortened ID without its dots: its beginning or its end, as 'jobctl top'
// shows it. It returns "" if the text is not a shortened ID.
func shortID(text string) string {
	text = strings.Trim(strings.TrimPrefix(strings.TrimSuffix(text, "…"), "…"), ".")
	digits := strings.ReplaceAll(strings.ToLower(text), "-", "")
	if len(digits) < 4 || len(digits) >= 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return ""
	}
	return digits
}

// findJob returns the one job whose ID begins or ends with text.
func findJob(ctx context.Context, queue admin.Admin, text string) (pawl.ID, error) {
	var ids []pawl.ID
	for after, more := "", true; more && len(ids) < admin.MaxFound; more = after != "" {
		found, next, err := queue.FindIDs(ctx, shortID(text), after)
		if err != nil {
			return pawl.ID{}, err
		}
		ids, after = append(ids, found...), next
	}
	switch {
	case len(ids) == 0:
		return pawl.ID{}, &failure{exitNoMatch, fmt.Sprintf("no job has an ID that begins or ends with %q", shortID(text)),
			"It is done, or it never existed; 'jobctl job list' shows the jobs."}
	case len(ids) == 1:
		return ids[0], nil
	}
	var lines []string
	for _, id := range ids {
		lines = append(lines, id.String())
	}
	count := fmt.Sprint(len(ids))
	if len(ids) >= admin.MaxFound {
		count += " or more"
	}
	return pawl.ID{}, &failure{exitUsage, fmt.Sprintf("%s jobs have an ID that begins or ends with %q; give more of it:", count, shortID(text)), strings.Join(lines, "\n")}
}

var payloadForms = map[string]admin.PayloadForm{
	"auto": admin.PayloadAuto, "json": admin.PayloadJSON, "hex": admin.PayloadHex,
	"base64": admin.PayloadBase64, "none": admin.PayloadSize,
}

// fact prints one line about a job.
func (a *app) fact(name, format string, args ...any) {
	fmt.Fprintf(a.stdout, "%-11s %s\n", name, fmt.Sprintf(format, args...))
}

// textFact prints a text of the file, unless it is empty.
func (a *app) textFact(name, text string) {
	if text != "" {
		a.fact(name, "%s", plain.Text(text))
	}
}

// timeFact prints a time, unless it is zero.
func (a *app) timeFact(name string, t time.Time) {
	if !t.IsZero() {
		a.fact(name, "%s", a.moment(t))
	}
}

func (a *app) showFacts(e *pawl.Envelope, atRest bool) {
	a.fact("id", "%s", e.ID)
	a.fact("kind", "%s", plain.Text(e.Kind))
	if a.fact("queue", "%s", plain.Text(e.Queue)); e.Origin != e.Queue {
		a.fact("origin", "%s", plain.Text(e.Origin))
	}
	a.fact("state", "%s", stateOf(e, atRest))
	if e.Death != nil {
		a.fact("reason", "%s", plain.Text(string(e.Death.Reason)))
		a.fact("died", "%s", a.moment(e.Death.At))
	}
	a.fact("attempts", "%d of %d", e.Attempts, e.MaxRetries+1)
	a.fact("failures", "%d", e.Failures)
	a.fact("crashes", "%d", e.Crashes)
	a.fact("priority", "%d", e.Priority)
	a.fact("sequence", "%d", e.Seq)
	a.fact("created", "%s", a.moment(e.Created))
	a.fact("not before", "%s", a.moment(e.NotBefore))
	if e.State == pawl.Leased {
		a.fact("leased", "%s", a.moment(e.LeasedSince))
	}
	timeout, policy := "the worker's", "the kind's or the worker's"
	if e.Timeout != 0 {
		timeout = e.Timeout.String()
	}
	if e.Policy != nil {
		policy = e.Policy.String()
	}
	a.fact("timeout", "%s", timeout)
	a.fact("policy", "%s", plain.Text(policy))
	a.showRare(e)
}

// showRare prints the fields that few jobs have.
func (a *app) showRare(e *pawl.Envelope) {
	a.timeFact("deadline", e.Deadline)
	a.textFact("unique", e.UniqueKey)
	if e.HoldsKey && e.State == pawl.Dead {
		a.fact("key", "%s; this dead job holds it, and 'jobctl key release' lets its other jobs run", plain.Text(e.Key))
	} else {
		a.textFact("key", e.Key)
	}
	if e.Cost > 1 {
		a.fact("cost", "%d", e.Cost)
	}
	if e.Weight > 1 {
		a.fact("weight", "%d", e.Weight)
	}
	a.textFact("group", e.Group)
	a.showIDs("after", e.After)
	a.showIDs("after any", e.AfterAny)
	a.textFact("idempotency", e.IdempotencyKey)
	if e.KeyID != "" {
		a.fact("signed by", "key %s", plain.Text(e.KeyID))
	}
	a.timeFact("completed", e.Completed)
}

// showIDs prints the jobs that a job waits for, which may be many.
func (a *app) showIDs(name string, ids []pawl.ID) {
	const shown = 10
	for i, id := range ids {
		if i == shown {
			a.fact("", "and %d more; -o json has all", len(ids)-shown)
			return
		}
		a.fact(name, "%s", id)
		name = ""
	}
}

// stateOf returns the state with its meaning. atRest says that the job is in the file of a
// stopped app.
func stateOf(e *pawl.Envelope, atRest bool) string {
	switch {
	case e.State == pawl.Leased && !atRest && e.Cancelled:
		return "leased and cancelled; its attempt was asked to end"
	case e.State == pawl.Leased && !atRest:
		return "leased; it runs"
	case e.State == pawl.Leased && e.Cancelled:
		return "leased and cancelled; its process is gone, the next open makes it a dead job"
	case e.State == pawl.Leased:
		return "leased; its process is gone, the next open makes it ready"
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
		fmt.Fprintf(a.stdout, "  %s: %s\n", plain.Text(key), plain.Text(headers[key]))
	}
}

func (a *app) showHistory(e *pawl.Envelope) {
	if e.Failures == 0 {
		a.fact("history", "no failed attempt")
		return
	}
	text := plural(e.Failures, "failed attempt")
	if n := e.Failures - len(e.History); n > 0 {
		text += fmt.Sprintf(", %d of them no longer kept", n)
	}
	a.fact("history", "%s", text)
	for _, f := range e.History {
		fmt.Fprintf(a.stdout, "  attempt %d  %s\n", f.Attempt, a.moment(f.At))
		message, whole := truncate(f.Error, pawl.MaxErrorText)
		if !whole {
			message += fmt.Sprintf("\n(cut at %s of %s)", plain.Size(pawl.MaxErrorText), plain.Size(int64(len(f.Error))))
		}
		fmt.Fprintf(a.stdout, "    %s\n", escapeLines(message, "    "))
		if f.Stack != "" {
			fmt.Fprintf(a.stdout, "    stack:\n      %s\n", escapeLines(strings.TrimRight(f.Stack, "\n"), "      "))
		}
	}
}
