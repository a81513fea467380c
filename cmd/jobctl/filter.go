package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

// filterFlags select jobs.
type filterFlags struct {
	queues, kinds        []string
	inStates, reasons    []string
	lastError, group     string
	payload              []string
	since, until, before time.Time
	died                 deathFlags
	sort                 string
	newest               bool

	states []pawl.State // the states that a command supports; nil: all
}

// register adds the flags. states are the states that the command supports; for a single state
// there is no flag.
func (f *filterFlags) register(a *app, c *cobra.Command, states ...pawl.State) {
	f.states = states
	flags := c.Flags()
	flags.VarP(eachFlag(&f.queues, driver.CheckQueue), "queue", "q", "only jobs in `QUEUE`; may be repeated")
	if len(states) != 1 {
		words := stateWords(states)
		flags.VarP(eachOf(&f.inStates, words...), "state", "s", "only jobs in this `STATE`: "+listed(words)+"; may be repeated")
	}
	flags.VarP(eachFlag(&f.kinds, driver.CheckKind), "kind", "k", "only jobs of this `KIND`; may be repeated")
	flags.Var(textFlag(&f.group), "group", "only members of this `GROUP` of jobs")
	flags.Var(textFlag(&f.lastError), "error", "only jobs whose last error contains this `TEXT`")
	flags.Var(manyFlag{flagFunc{f.term}}, "payload", "only jobs whose payload matches this `TERM`, such as user.id=42; see 'jobctl help filters'")
	dead := len(states) == 0 || slices.Contains(states, pawl.Dead)
	if dead {
		flags.Var(eachOf(&f.reasons, reasonWords...), "reason", "only jobs that are dead for this `REASON`: "+listed(reasonWords)+"; may be repeated")
	}
	flags.Var(a.momentFlag(&f.since), "since", "only jobs created at or after this `TIME`; an age such as 2h counts back from now")
	flags.Var(a.momentFlag(&f.until), "until", "only jobs created before this `TIME`")
	flags.Var(a.momentFlag(&f.before), "older-than", "only jobs in this state for at least `AGE`")
	if dead {
		f.died.register(a, c)
		flags.Var(oneOf(&f.sort, sortWords...), "sort", "sort by `KEY`: "+listed(sortWords))
	}
	flags.BoolVar(&f.newest, "newest", false, "newest first: dead jobs by when they became dead, others by creation")
}

// deathFlags select dead jobs by the time when they became dead.
type deathFlags struct{ since, until time.Time }

func (d *deathFlags) register(a *app, c *cobra.Command) {
	c.Flags().Var(a.momentFlag(&d.since), "died-since", "only jobs that became dead at or after this `TIME`")
	c.Flags().Var(a.momentFlag(&d.until), "died-until", "only jobs that became dead before this `TIME`")
}

func (d *deathFlags) given() bool { return !d.since.IsZero() || !d.until.IsZero() }

// sortWords are the values of --sort.
var sortWords = texts([]pawl.Order{pawl.OrderCreated, pawl.OrderDied})

// reasonWords are the values of --reason. A misspelled reason would match nothing, and the empty
// result would look like good news.
var reasonWords = texts([]pawl.Reason{
	pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonPoison, pawl.ReasonDeadline,
	pawl.ReasonCancelled, pawl.ReasonSignature, pawl.ReasonPayload, pawl.ReasonCorrupt,
})

// term adds a payload term, and rejects an invalid one before reading anything.
func (f *filterFlags) term(text string) error {
	if err := admin.ParsePayload([]string{text}); err != nil {
		return err
	}
	if path, _, _ := strings.Cut(text, "="); strings.ContainsAny(path, "<>") && !strings.ContainsAny(path, "~\"") {
		return errors.New("a term supports =, != and ~, but not < or >") // it would be part of a name that no payload has
	}
	f.payload = append(f.payload, text)
	return nil
}

// filters returns a filter for package admin for each state that the command supports.
func (f *filterFlags) filters() (all []admin.Filter) {
	one := admin.Filter{
		Filter:  pawl.Filter{Group: f.group, DiedSince: f.died.since, DiedBefore: f.died.until},
		Error:   f.lastError,
		Payload: f.payload,
		Since:   f.since, Until: f.until, Before: f.before,
	}
	one.Queue, one.Queues = admin.OneOrMore[string](f.queues)
	one.Kind, one.Kinds = admin.OneOrMore[string](f.kinds)
	one.Reason, one.Reasons = admin.OneOrMore[pawl.Reason](f.reasons)
	died := f.died.given() || f.sort == string(pawl.OrderDied)
	if f.states == nil {
		if one.State, one.States = admin.OneOrMore[pawl.State](f.inStates); died && len(f.inStates) == 0 {
			one.State = pawl.Dead
		}
		return []admin.Filter{f.sorted(one)}
	}
	for _, state := range f.states {
		if len(f.inStates) > 0 && !slices.Contains(f.inStates, string(state)) {
			continue
		}
		if (len(f.reasons) > 0 || died) && state != pawl.Dead {
			continue
		}
		one.State = state
		all = append(all, f.sorted(one))
	}
	return all
}

// sorted returns a filter with the order that the flags request.
func (f *filterFlags) sorted(one admin.Filter) admin.Filter {
	one.Order, one.Newest = pawl.Order(f.sort), f.newest
	switch {
	case !f.newest || f.sort != "":
	case one.State == pawl.Dead:
		one.Order = pawl.OrderDied
	default:
		one.Order = pawl.OrderCreated
	}
	return one
}

// known rejects missing queues: a misspelled queue would look like an empty one.
func (f *filterFlags) known(ctx context.Context, queue admin.Admin) error {
	return knownQueues(ctx, queue, f.queues)
}

// given reports whether there is any filter.
func (f *filterFlags) given() bool {
	return len(f.queues)+len(f.inStates)+len(f.kinds)+len(f.payload)+len(f.reasons) > 0 || f.lastError+f.group != "" ||
		!f.since.IsZero() || !f.until.IsZero() || !f.before.IsZero() || f.died.given()
}

// String describes the filters: queue=email state=dead error~"timeout".
func (f *filterFlags) String() string {
	var parts []string
	add := func(name, text string) {
		if text != "" {
			parts = append(parts, name+text)
		}
	}
	add("queue=", strings.Join(f.queues, "|"))
	add("group=", f.group)
	add("kind=", strings.Join(f.kinds, "|"))
	switch {
	case len(f.inStates) > 0:
		add("state=", strings.Join(f.inStates, "|"))
	case len(f.states) > 0:
		add("state=", strings.Join(stateWords(f.states), "|"))
	}
	if f.lastError != "" {
		add("error~", fmt.Sprintf("%q", f.lastError))
	}
	for _, term := range f.payload {
		add("payload ", term)
	}
	add("reason=", strings.Join(f.reasons, "|"))
	addTime := func(name string, t time.Time) {
		if !t.IsZero() {
			add(name, bounded(t).Format(time.RFC3339))
		}
	}
	addTime("created since ", f.since)
	addTime("created before ", f.until)
	addTime("unchanged since ", f.before)
	addTime("died since ", f.died.since)
	addTime("died before ", f.died.until)
	return strings.Join(parts, " ")
}

// stateWords returns states as flag values; all states if there are none.
func stateWords(states []pawl.State) []string {
	if len(states) == 0 {
		states = pawl.States()
	}
	return texts(states)
}
