package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt/offline"
)

// entry is an undelivered message, as -json prints it.
type entry struct {
	ID       pawl.ID     `json:"id"`
	State    pawl.State  `json:"state"` // ready, delayed for a retry, leased by a killed sync, or dead
	Added    time.Time   `json:"added"`
	Text     string      `json:"text"`
	Attempts int         `json:"attempts"`
	Due      time.Time   `json:"due,omitzero"` // of the retry
	Reason   pawl.Reason `json:"reason,omitempty"`
	Errors   []failure   `json:"errors,omitempty"` // oldest first
}

type failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

func (p *program) list(ctx context.Context, flags *flag.FlagSet, args []string) error {
	asJSON := flags.Bool("json", false, "print a JSON array")
	if rest, err := p.parse(flags, "", args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usageError{fmt.Sprintf("list takes no %q", rest[0])}
	}
	entries, err := p.entries(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		out := json.NewEncoder(p.stdout)
		out.SetIndent("", "  ")
		return out.Encode(entries)
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(p.stdout, "no messages")
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tATTEMPTS\tTEXT\tLAST ERROR")
	for _, e := range entries {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", e.ID, e.status(time.Now()), e.Attempts, line(e.Text, 40), line(e.lastError(), 100))
	}
	return table.Flush()
}

// entries returns the messages in the order in which they were added. Damaged ones are reported and
// skipped.
func (p *program) entries(ctx context.Context) ([]entry, error) {
	entries := []entry{} // not nil: [] in JSON
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	a, err := admin.Open(ctx, offline.New(path, nil), nil) // the file, or the command that has it open
	if errors.Is(err, fs.ErrNotExist) {
		return entries, nil
	} else if err != nil {
		return nil, err
	}
	defer a.Close()
	query := admin.Query{Filter: admin.Filter{Filter: pawl.Filter{Kind: send.Name()}}, Detail: admin.Whole}
	for job, err := range admin.Jobs(ctx, a, query) {
		if errors.Is(err, pawl.ErrCorrupt) && job != nil {
			fmt.Fprintln(p.stderr, "outbox:", err)
			continue
		} else if err != nil {
			return nil, err
		}
		m, err := send.Job(job)
		if err != nil {
			fmt.Fprintf(p.stderr, "outbox: job %s: %v\n", job.ID, err)
			continue
		}
		e := entry{ID: job.ID, State: job.State, Added: job.Created, Text: m.Args.Text, Attempts: job.Attempts}
		if job.State == pawl.Delayed {
			e.Due = job.NotBefore
		}
		if job.Death != nil {
			e.Reason = job.Death.Reason
		}
		for _, f := range job.History {
			e.Errors = append(e.Errors, failure{f.At, f.Error})
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// status describes the state to a user.
func (e entry) status(now time.Time) string {
	switch {
	case e.State == pawl.Dead:
		return fmt.Sprintf("dead, %s", e.Reason)
	case e.Due.After(now):
		return fmt.Sprintf("retry in %v", e.Due.Sub(now).Round(time.Second))
	}
	return "due"
}

func (e entry) lastError() string {
	if len(e.Errors) == 0 {
		return ""
	}
	return e.Errors[len(e.Errors)-1].Error
}

// line puts untrusted text on one terminal line of at most n characters, without control characters.
func line(text string, n int) string {
	printed := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if r := []rune(printed); len(r) > n {
		printed = string(r[:n-1]) + "…"
	}
	return printed
}
