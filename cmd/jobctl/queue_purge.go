package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// purgeable are the states in which a job can be purged. A leased job is running.
var purgeable = []pawl.State{pawl.Ready, pawl.Delayed, pawl.Dead, pawl.Completed}

func (a *app) queuePurgeCommand() *cobra.Command {
	jobs := new(jobSelection)
	ch := &change{app: a, selection: jobs}
	var state string
	v := verb{
		words: "queue purge", do: "purge", did: "purged", ask: "Delete %s for good?",
		only: "Its state has changed in the meantime", miss: "wrong_state", list: "'jobctl queue list' shows what each queue has.",
	}
	s := &spec{
		use: "purge QUEUE --state STATE", short: "remove all jobs of a queue in one state", args: 1, ids: true,
		long: `Permanently removes the jobs of a queue in one state, after a question with their
number. Waiting jobs are first cancelled and then deleted. Running jobs are not
touched: 'jobctl job cancel -s leased' asks them to end.`,
		example: `  jobctl --db jobs.db queue purge email --state completed --older-than 7d
  jobctl --db jobs.db queue purge email --state delayed --dry-run`,
		json:  v.changeJSON(),
		exits: []int{exitNoMatch}, complete: a.completeQueue,
	}
	c := a.command(s)
	s.run = func(ctx context.Context, args []string) error {
		switch {
		case state == "":
			return usage(v.words, "no state was named; add --state")
		case state == string(pawl.Leased):
			return usage(v.words, "leased jobs run and are not purged; 'jobctl job cancel -s leased' asks them to end")
		case jobs.died.given() && state != string(pawl.Dead):
			return usage(v.words, "--died-since and --died-until are for --state dead")
		}
		name, err := oneQueue(v.words, args)
		if err != nil {
			return err
		}
		v.states, v.apply = []pawl.State{pawl.State(state)}, purge(pawl.State(state))
		ch.verb, jobs.queues, jobs.inStates = v, []string{name}, []string{state}
		return ch.run(ctx, nil)
	}
	words := append(stateWords(purgeable), string(pawl.Leased))
	c.Flags().VarP(oneOf(&state, words...), "state", "s", "only jobs in this `STATE`: "+listed(words[:len(purgeable)]))
	c.Flags().Var(a.momentFlag(&jobs.before), "older-than", "only jobs in this state for at least `AGE`")
	jobs.died.register(a, c)
	c.Flags().BoolVar(&jobs.newest, "newest", false, "newest first: dead jobs by when they became dead, others by creation")
	c.Flags().VarP(countFlag(&ch.limit), "limit", "n", "at most `COUNT` of them")
	dryRunFlag(c, &ch.dry)
	a.completeFlag(c, "state", cobra.FixedCompletions(words[:len(purgeable)], cobra.ShellCompDirectiveNoFileComp))
	return c
}

// purge deletes jobs that are in a state.
func purge(state pawl.State) apply {
	return func(ctx context.Context, queue admin.Admin, how how, ids []pawl.ID) ([]error, error) {
		if state == pawl.Dead || state == pawl.Completed {
			return queue.Do(ctx, how.on(admin.Action{Verb: admin.Delete}), ids...)
		}
		results, err := queue.Do(ctx, how.on(admin.Action{Verb: admin.Cancel}), ids...)
		if err != nil || how.dry {
			return results, err
		}
		var dead []pawl.ID
		var at []int
		for i, err := range results {
			if err == nil {
				dead, at = append(dead, ids[i]), append(at, i)
			}
		}
		if len(dead) == 0 {
			return results, nil
		}
		cancelled := &admin.Filter{Filter: pawl.Filter{State: pawl.Dead, Reason: pawl.ReasonCancelled}}
		deleted, err := queue.Do(ctx, admin.Action{Verb: admin.Delete, If: cancelled}, dead...)
		if err != nil {
			return nil, fmt.Errorf("some are now dead jobs and may not be deleted: %w", err)
		}
		for n, i := range at {
			results[i] = deleted[n]
		}
		return results, nil
	}
}
