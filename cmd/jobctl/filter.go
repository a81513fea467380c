package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// filterFlags choose jobs.
type filterFlags struct {
	queue, state, kind   string
	lastError            string
	payload              []string
	reason               string
	since, until, before time.Time

	states []pawl.State // that a command is for; nil: all
}

// register adds the flags. States are those that the command is for; with one there is no
// flag for it.
func (f *filterFlags) register(a *app, c *cobra.Command, states ...pawl.State) {
	f.states = states
	flags := c.Flags()
	flags.VarP(nameFlag(&f.queue, pawl.ValidQueue), "queue", "q", "of this `QUEUE`")
	if len(states) != 1 {
		words := stateWords(states)
		flags.VarP(oneOf(&f.state, words...), "state", "s", "in this `STATE`: "+listed(words))
		_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	flags.VarP(nameFlag(&f.kind, pawl.ValidKind), "kind", "k", "of this `KIND`")
	flags.Var(textFlag(&f.lastError), "error", "whose last error has this `TEXT` in it")
	flags.Var(flagFunc{f.term}, "payload", "whose payload fits this `TERM`, such as user.id=42; see 'jobctl help filters'")
	if len(states) == 0 || slices.Contains(states, pawl.Dead) {
		flags.Var(oneOf(&f.reason, reasonWords...), "reason", "dead for this `REASON`: "+listed(reasonWords))
	}
	flags.Var(a.momentFlag(&f.since), "since", "made at that time or later: an age or a `TIME`")
	flags.Var(a.momentFlag(&f.until), "until", "made before that `TIME`")
	flags.Var(a.momentFlag(&f.before), "older-than", "in their state for that `AGE`")
	_ = c.RegisterFlagCompletionFunc("queue", a.completeQueues)
	_ = c.RegisterFlagCompletionFunc("kind", a.completeKinds)
	if flags.Lookup("reason") != nil {
		_ = c.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasonWords, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, name := range []string{"error", "payload", "since", "until", "older-than"} {
		if flags.Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
		}
	}
}

// reasonWords are the reasons of a death, as --reason takes them. A misspelt one would match
// nothing, and look like good news.
var reasonWords = []string{
	string(pawl.ReasonExhausted), string(pawl.ReasonPermanent), string(pawl.ReasonPoison), string(pawl.ReasonDeadline),
	string(pawl.ReasonCancelled), string(pawl.ReasonSignature), string(pawl.ReasonPayload), string(pawl.ReasonCorrupt),
}

// term adds a term about payloads. A wrong one is noticed before anything is looked at.
func (f *filterFlags) term(text string) error {
	if err := admin.ParsePayload([]string{text}); err != nil {
		return err
	}
	if path, _, _ := strings.Cut(text, "="); strings.ContainsAny(path, "<>") && !strings.ContainsAny(path, "~\"") {
		return errors.New("a term knows =, != and ~, and no < or >") // it would be part of a name that no payload has
	}
	f.payload = append(f.payload, text)
	return nil
}

// filters are what package admin is asked for, one for each state that the command is for.
func (f *filterFlags) filters() (all []admin.Filter) {
	one := admin.Filter{
		Filter:  pawl.Filter{Queue: f.queue, State: pawl.State(f.state), Kind: f.kind, Reason: pawl.Reason(f.reason)},
		Error:   f.lastError,
		Payload: f.payload,
		Since:   f.since, Until: f.until, Before: f.before,
	}
	if f.state != "" || f.states == nil {
		return []admin.Filter{one}
	}
	for _, state := range f.states {
		if f.reason != "" && state != pawl.Dead {
			continue
		}
		one.State = state
		all = append(all, one)
	}
	return all
}

// given reports whether any filter was named.
func (f *filterFlags) given() bool {
	return f.queue != "" || f.state != "" || f.kind != "" || f.lastError != "" || len(f.payload) > 0 || f.reason != "" ||
		!f.since.IsZero() || !f.until.IsZero() || !f.before.IsZero()
}

// String repeats the filters: queue=email state=dead error~"timeout".
func (f *filterFlags) String() string {
	var parts []string
	add := func(name, text string) {
		if text != "" {
			parts = append(parts, name+text)
		}
	}
	add("queue=", f.queue)
	add("kind=", f.kind)
	switch {
	case f.state != "":
		add("state=", f.state)
	case len(f.states) > 0:
		add("state=", strings.Join(stateWords(f.states), "|"))
	}
	if f.lastError != "" {
		add("error~", fmt.Sprintf("%q", f.lastError))
	}
	for _, term := range f.payload {
		add("payload ", term)
	}
	add("reason=", f.reason)
	addTime := func(name string, t time.Time) {
		if !t.IsZero() {
			add(name, bounded(t).Format(time.RFC3339))
		}
	}
	addTime("made since ", f.since)
	addTime("made before ", f.until)
	addTime("unchanged since ", f.before)
	return strings.Join(parts, " ")
}

// stateWords are states as flags take them; all of them when there are none.
func stateWords(states []pawl.State) (words []string) {
	if len(states) == 0 {
		states = pawl.States()
	}
	for _, state := range states {
		words = append(words, string(state))
	}
	return words
}
