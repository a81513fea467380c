package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// spec describes one command of the tree.
type spec struct {
	use     string // its last word, and the possible arguments
	short   string // one line for the overview
	long    string // the first paragraph of --help
	example string // command lines
	json    string // the fields of its JSON, "" if it has none
	exits   []int  // exit codes besides 0, 1, 2 and 130, and besides 4, 5 and 7 unless nofile
	nofile  bool   // it needs neither --db nor --addr
	ids     bool   // it supports -o ids
	args    int    // how many arguments it accepts, any number if negative

	run      func(ctx context.Context, args []string) error
	complete cobra.CompletionFunc // completes its arguments
}

// The keys of a command's annotations.
const (
	withoutFile = "nofile"
	withIDs     = "ids"
	jsonFields  = "json"
	exitCodes   = "exits"
)

// command builds a command from its spec. The caller adds its flags.
func (a *app) command(s *spec) *cobra.Command {
	exits := s.exits
	if !s.nofile {
		exits = append([]int{exitLocked, exitDamaged, exitFormat}, exits...)
	}
	c := &cobra.Command{
		Use: s.use, Short: s.short, Long: s.long, Example: s.example,
		Annotations:           map[string]string{jsonFields: s.json, exitCodes: fmt.Sprint(exits)},
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	c.Flags().SortFlags = false // their order puts the important ones first
	if s.nofile {
		c.Annotations[withoutFile] = "yes"
	}
	if s.ids {
		c.Annotations[withIDs] = "yes"
	}
	if s.complete != nil {
		c.ValidArgsFunction = s.complete
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case s.args >= 0 && len(args) > s.args:
			return usage(wordsOf(c), "unexpected argument %q", args[s.args])
		case a.flags.db != "" && a.flags.addr != "":
			return usage(wordsOf(c), "--db and --addr were given; choose one")
		case a.flags.output == "ids" && !s.ids:
			return usage(wordsOf(c), "-o ids is for commands that list or change jobs, runs, or queues")
		case !s.nofile && !a.aim():
			return usage(wordsOf(c), "no file was named; add --db FILE")
		case !s.nofile && otherScheme(a.flags.db) != "":
			return usage(wordsOf(c), "jobctl cannot open %s: queues; it opens files, postgres:// and redis:// servers", otherScheme(a.flags.db))
		}
		return exampled(wordsOf(c), s.example, s.run(c.Context(), args))
	}
	return c
}

func init() { cobra.EnableCommandSorting = false } // the tree has the order of a day's work

// commands builds the whole tree.
func (a *app) commands() *cobra.Command {
	root := a.noun("jobctl", "inspect and control a queue, live or stopped")
	root.AddCommand(
		a.statsCommand(), a.throughputCommand(), a.topCommand(), a.uiCommand(), a.watchCommand(), a.workCommand(),
		a.group("job", "jobs of every state",
			a.jobListCommand(), a.jobShowCommand(), a.jobWhyCommand(), a.jobLogsCommand(), a.jobWaitCommand(), a.jobEnqueueCommand(), a.jobEditCommand(), a.retryCommand("job retry"),
			a.jobCancelCommand(), a.jobDeleteCommand(), a.jobRunNowCommand()),
		a.group("dead", "dead jobs",
			a.deadListCommand(), a.deadSummaryCommand(), a.retryCommand("dead retry"), a.deadForwardCommand(), a.deadDeleteCommand()),
		a.group("queue", "queues",
			a.queueListCommand(), a.queueShowCommand(), a.queuePauseCommand(), a.queueResumeCommand(), a.queuePurgeCommand()),
		a.group("key", "keys of queues that limit them", a.keyListCommand(), a.keyShowCommand(), a.keyReleaseCommand()),
		a.group("limit", "limits of queues", a.limitListCommand(), a.limitSetCommand(), a.limitResetCommand()),
		a.group("wf", "workflow runs",
			a.wfListCommand(), a.wfShowCommand(), a.wfStreamCommand(), a.wfSignalCommand(), a.wfCancelCommand(), a.wfTerminateCommand(),
			a.wfPauseCommand(), a.wfResumeCommand(), a.wfForkCommand(), a.wfVerifyCommand(), a.wfPruneCommand()),
		a.group("sched", "schedules",
			a.schedListCommand(), a.schedShowCommand(), a.schedHistoryCommand(), a.schedAddCommand(), a.schedSetCommand(),
			a.schedResetCommand(), a.schedPauseCommand(), a.schedResumeCommand(), a.schedTriggerCommand(),
			a.schedBackfillCommand(), a.schedRemoveCommand(), a.schedNextCommand()),
		a.group("group", "groups of jobs", a.groupListCommand(), a.groupShowCommand(), a.groupCloseCommand(), a.groupCancelCommand()),
		a.exportCommand(), a.importCommand(),
		a.group("db", "the file",
			a.dbInfoCommand(), a.dbCheckCommand(), a.dbBackupCommand(), a.dbCompactCommand(),
			a.dbReapCommand(), a.dbSalvageCommand()),
		a.completionCommand(), a.manCommand(), a.versionCommand(),
	)
	for _, c := range leaves(root) {
		if a.completes {
			a.completeFlags(c)
		}
		refuseTwice(c)
	}
	root.PersistentFlags().SortFlags = false
	a.register(root.PersistentFlags())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(a.helpCommand())
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.stdout.WriteString(help(c)) })
	root.SetFlagErrorFunc(flagProblem)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return root
}

// group is a noun with its verbs.
func (a *app) group(noun, short string, verbs ...*cobra.Command) *cobra.Command {
	c := a.noun(noun, short)
	c.AddCommand(verbs...)
	return c
}

// noun is a command that does nothing without a verb.
func (a *app) noun(word, short string) *cobra.Command {
	return &cobra.Command{
		Use: word, Short: short,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true, DisableFlagsInUseLine: true,
		Args: cobra.ArbitraryArgs, // lets an unknown verb reach RunE
		RunE: func(c *cobra.Command, args []string) error {
			words := wordsOf(c)
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			if words == "" {
				return usage("", "no command was named")
			}
			var verbs []string
			for _, verb := range c.Commands() {
				verbs = append(verbs, verb.Name())
			}
			return usage(words, "%q needs a verb: %s", words, strings.Join(verbs, ", "))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// unknownCommand names commands below c with a similar spelling.
func unknownCommand(c *cobra.Command, typed string) error {
	words := wordsOf(c)
	text := fmt.Sprintf("unknown command %q", strings.TrimSpace(words+" "+typed))
	c.SuggestionsMinimumDistance = max(min(2, len(typed)/2), 1) // in letters
	if near := c.SuggestionsFor(typed); len(near) > 0 {
		text += "; was it " + listed(near) + "?"
	}
	return usage(words, "%s", text)
}

// wordsOf returns a command as typed after jobctl: "job list".
func wordsOf(c *cobra.Command) string {
	_, words, _ := strings.Cut(c.CommandPath(), " ")
	return words
}

// leaves returns the commands that do something, in the order of the tree.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	if c.Annotations != nil && !c.Hidden {
		all = append(all, c)
	}
	for _, below := range c.Commands() {
		all = append(all, leaves(below)...)
	}
	return slices.Clip(all)
}
