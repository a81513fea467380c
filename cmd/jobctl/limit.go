package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// limitView is the limits of a queue, in JSON.
type limitView struct {
	Queue    admin.Text    `json:"queue"`
	By       string        `json:"by"` // program or operator
	Limits   limitsOfView  `json:"limits"`
	Declared *limitsOfView `json:"declared"` // null: the declared limits are in force
}

// limitsOfView is pawl.Limits in JSON.
type limitsOfView struct {
	Running          int    `json:"running"`
	RunningPerKey    int    `json:"running_per_key"`
	Rate             string `json:"rate"`
	RatePerKey       string `json:"rate_per_key"`
	MaxWaiting       int    `json:"max_waiting"`
	MaxWaitingPerKey int    `json:"max_waiting_per_key"`
	InOrder          string `json:"in_order"`
	Fair             bool   `json:"fair"`

	Pool        admin.Text `json:"pool"`
	PoolRunning int        `json:"pool_running"`
}

// limitFields is the part of --help that lists the fields of a limitView.
const limitFields = `  queue, by (program, or operator if an operator has set them)
  limits: running, running_per_key, rate, rate_per_key (as --rate takes them;
    "" for no rate), max_waiting, max_waiting_per_key (0 for no limit),
    in_order (none, continue, or hold), fair (true or false), pool ("": none),
    pool_running
  declared: the same fields, as the program declares them (null: they are in
    force)
`

func viewOfLimits(q *pawl.QueueStats) limitView {
	of := func(l pawl.Limits) limitsOfView {
		return limitsOfView{
			l.Running, l.RunningPerKey, rateText(l.Rate), rateText(l.RatePerKey), l.MaxWaiting, l.MaxWaitingPerKey, l.InOrder.String(), l.Fair,
			admin.Text(l.Pool.Name), l.Pool.Running,
		}
	}
	v := limitView{Queue: admin.Text(q.Name), By: "program", Limits: of(q.Limits)}
	if q.Declared != nil {
		declared := of(*q.Declared)
		v.By, v.Declared = "operator", &declared
	}
	return v
}

// limitTable returns a table of limits; limitRow makes its rows.
func limitTable() []column {
	return []column{
		{title: "QUEUE", cut: middle}, {title: "RUNNING", right: true}, {title: "PER KEY", right: true}, {title: "RATE", right: true},
		{title: "RATE PER KEY", right: true}, {title: "WAITING", right: true}, {title: "PER KEY", right: true}, {title: "IN ORDER"}, {title: "FAIR"}, {title: "POOL"}, {title: "BY"},
	}
}

func limitRow(q *pawl.QueueStats) []string {
	cells := func(l pawl.Limits) []string {
		order, fair, pool := "", "", ""
		if l.InOrder != pawl.OrderNone {
			order = l.InOrder.String()
		}
		if l.Fair {
			fair = "yes"
		}
		if l.Pool.Running > 0 {
			pool = fmt.Sprintf("%s %d", cell(l.Pool.Name, nameWidth), l.Pool.Running)
		}
		return []string{number(l.Running), number(l.RunningPerKey), rateText(l.Rate), rateText(l.RatePerKey), number(l.MaxWaiting), number(l.MaxWaitingPerKey), order, fair, pool}
	}
	row, by := cells(q.Limits), "program"
	declared := row
	if q.Declared != nil {
		declared, by = cells(*q.Declared), "operator"
	}
	for i, was := range declared {
		now := orDash(row[i])
		if row[i] != was {
			now += " (" + orDash(was) + ")"
		}
		row[i] = now
	}
	return append(append([]string{cell(q.Name, nameWidth)}, row...), by)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// rateText returns a rate in the notation of parseRate, and "" for none.
func rateText(r pawl.Rate) string {
	if r.Starts == 0 {
		return ""
	}
	per := r.Per.String()
	if strings.HasSuffix(per, "m0s") {
		per = strings.TrimSuffix(per, "0s")
	}
	if strings.HasSuffix(per, "h0m") {
		per = strings.TrimSuffix(per, "0m")
	}
	text := fmt.Sprintf("%d/%s", r.Starts, per)
	if r.Burst > 1 || r.MaxCost > 1 {
		text += fmt.Sprintf("/%d", max(1, r.Burst))
	}
	if r.MaxCost > 1 {
		text += fmt.Sprintf("/%d", r.MaxCost)
	}
	return text
}

// parseRate reads a rate such as 100/1m, 100/1m/20 with a burst of 20, or 100/1m/20/8 with a cost of at most 8.
func parseRate(text string) (r pawl.Rate, err error) {
	if text == "none" {
		return r, nil
	}
	parts := strings.Split(text, "/")
	bad := errors.New("it is no rate such as 100/1m, 100/1m/20 with a burst, 100/1m/20/8 with a highest cost, or none")
	if len(parts) < 2 || len(parts) > 4 {
		return r, bad
	}
	if r.Starts, err = strconv.Atoi(parts[0]); err != nil || r.Starts < 1 {
		return r, bad
	}
	if r.Per, err = time.ParseDuration(parts[1]); err != nil {
		if r.Per, err = parseAge(parts[1]); err != nil {
			return r, bad
		}
	}
	for i, field := range []*int{&r.Burst, &r.MaxCost}[:len(parts)-2] {
		if *field, err = strconv.Atoi(parts[2+i]); err != nil || *field < 1 {
			return r, bad
		}
	}
	return r, pawl.Limits{Rate: r}.Validate()
}

func (a *app) limitListCommand() *cobra.Command {
	return a.command(&spec{
		use: "list", short: "queues with limits", ids: true,
		long: `Lists the queues that have limits: how many of their jobs run and wait at a time,
how many start in a period, and which pool they share with other queues. If an
operator has set another number, the number that the program declares follows in
parentheses. BY is operator if an operator has set limits.`,
		example: "  jobctl --db jobs.db limit list",
		json:    "a list of objects with\n" + limitFields + "With -o ids the names of the queues.\n",
		run: func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(queue admin.Admin) error {
				s, err := queue.Stats(ctx)
				if err != nil {
					return err
				}
				shown, err := a.listLimits(&s, func(q *pawl.QueueStats) bool { return q.Limits != (pawl.Limits{}) || q.Declared != nil })
				if err == nil && shown == 0 {
					a.say("no queue has limits")
				}
				return err
			})
		},
	})
}

// listLimits prints the limits of some queues, and returns how many.
func (a *app) listLimits(s *admin.Stats, chosen func(*pawl.QueueStats) bool) (shown int, err error) {
	out := a.listing(limitTable())
	for i := range s.Queues {
		if q := &s.Queues[i]; chosen(q) {
			if err := out.add(item{plain.Text(q.Name), viewOfLimits(q), limitRow(q)}); err != nil {
				return out.count, err
			}
		}
	}
	out.close()
	return out.count, nil
}

// limitFlags are changes of limits. Only flags that are given change them.
type limitFlags struct {
	set      []func(*pawl.Limits)
	poolName string // of --pool
}

func (f *limitFlags) apply(l pawl.Limits) pawl.Limits {
	switch f.poolName {
	case "":
	case "none":
		l.Pool = pawl.Pool{}
	default:
		l.Pool.Name = f.poolName
	}
	for _, set := range f.set {
		set(&l)
	}
	return l
}

func (f *limitFlags) register(flags *pflag.FlagSet) {
	count := func(name, usage string, field func(*pawl.Limits) *int) {
		flags.Var(flagFunc{func(text string) error {
			n, err := parseCount(text)
			f.set = append(f.set, func(l *pawl.Limits) { *field(l) = n })
			return err
		}}, name, usage)
	}
	rate := func(name, usage string, field func(*pawl.Limits) *pawl.Rate) {
		flags.Var(flagFunc{func(text string) error {
			r, err := parseRate(text)
			f.set = append(f.set, func(l *pawl.Limits) {
				if r.Starts > 0 && r.MaxCost == 0 {
					r.MaxCost = field(l).MaxCost // otherwise the queue would refuse jobs that it accepts now
				}
				*field(l) = r
			})
			return err
		}}, name, usage)
	}
	count("running", "at most `COUNT` jobs of the queue run at a time; 0 for no limit", func(l *pawl.Limits) *int { return &l.Running })
	count("running-per-key", "at most `COUNT` jobs of a key run at a time; 0 for no limit", func(l *pawl.Limits) *int { return &l.RunningPerKey })
	rate("rate", "the `RATE` at which jobs of the queue start, such as 100/1m, 100/1m/20 with a burst of 20, or 100/1m/20/8 with a highest cost of 8; none for no limit", func(l *pawl.Limits) *pawl.Rate { return &l.Rate })
	rate("rate-per-key", "the `RATE` at which jobs of a key start", func(l *pawl.Limits) *pawl.Rate { return &l.RatePerKey })
	flags.Var(textFlag(&f.poolName), "pool", "the queue shares the pool `NAME`, or none, with other queues")
	count("pool-running", "a job of the queue starts while fewer than `COUNT` jobs of all queues of its pool run", func(l *pawl.Limits) *int { return &l.Pool.Running })
	count("max-waiting", "at most `COUNT` jobs of the queue are ready or delayed; 0 for any number", func(l *pawl.Limits) *int { return &l.MaxWaiting })
	count("max-waiting-per-key", "at most `COUNT` jobs of a key are ready or delayed; 0 for any number", func(l *pawl.Limits) *int { return &l.MaxWaitingPerKey })
}

func (a *app) limitSetCommand() *cobra.Command {
	f := new(limitFlags)
	c := a.command(&spec{
		use: "set [QUEUE] [--running COUNT] [--rate RATE] …", short: "set other limits than the program declares", args: 1,
		long: `Sets limits of a queue, in place of those that its program declares. They apply at
once, also to the jobs in the queue, and stay in force across restarts of the program
until 'jobctl limit reset'. Limits without a flag keep their present values. Lower
limits do not end running jobs. The program alone sets the order and the turns of keys.

Each queue of a pool has a number of its own. Without QUEUE, --pool NAME means every
queue of that pool, so --pool-running changes all of their numbers, one queue after the
other. The limits of each of them then come from the operator, as if you had named it.

If a limit per key changes, the command reads every job of the queue that has a key, in
one transaction.`,
		example: `  jobctl --db jobs.db limit set sync --running 5 --rate-per-key 100/1m/20
  jobctl --db jobs.db limit set sync --rate none
  jobctl --db jobs.db limit set sync --pool gpu --pool-running 2
  jobctl --db jobs.db limit set --pool gpu --pool-running 4`,
		json:  "one object, or without QUEUE a list of objects, with\n" + limitFields,
		exits: []int{exitNoMatch}, complete: a.completeQueue,
		run: func(ctx context.Context, args []string) error {
			pool := ""
			if len(args) == 0 && f.poolName != "none" {
				pool = f.poolName
			}
			if len(f.set) == 0 && (pool != "" || len(args) > 0 && f.poolName == "") {
				return misused("limit set", "no limit was given; add a flag such as --running")
			}
			return a.setLimits(ctx, "limit set", args, pool, func(q *pawl.QueueStats) *pawl.Limits {
				l := f.apply(q.Limits)
				return &l
			})
		},
	})
	f.register(c.Flags())
	return c
}

func (a *app) limitResetCommand() *cobra.Command {
	var pool string
	c := a.command(&spec{
		use: "reset [QUEUE] [--pool NAME]", short: "return to the limits of the program", args: 1,
		long: `Drops the limits that 'jobctl limit set' gave to a queue, or to every queue of a pool.
The limits that its program declared last apply at once. If there are none to drop,
nothing changes.`,
		example: `  jobctl --db jobs.db limit reset sync
  jobctl --db jobs.db limit reset --pool gpu`,
		json:  "one object, or without QUEUE a list of objects, with\n" + limitFields,
		exits: []int{exitNoMatch}, complete: a.completeQueue,
		run: func(ctx context.Context, args []string) error {
			if pool != "" && len(args) > 0 {
				return misused("limit reset", "a queue and a pool were given; give one of them")
			}
			return a.setLimits(ctx, "limit reset", args, pool, func(*pawl.QueueStats) *pawl.Limits { return nil })
		},
	})
	c.Flags().Var(textFlag(&pool), "pool", "every queue that shares the pool `NAME` now, or declares it")
	return c
}

// setLimits changes the limits of a queue, which must exist, or of each queue of a pool, and prints them.
func (a *app) setLimits(ctx context.Context, words string, args []string, pool string, change func(*pawl.QueueStats) *pawl.Limits) error {
	if pool != "" {
		return a.with(ctx, func(queue admin.Admin) error { return a.setPool(ctx, queue, pool, change) })
	}
	name, err := oneQueue(words, args)
	if err != nil {
		return err
	}
	return a.with(ctx, func(queue admin.Admin) error {
		_, q, err := statsOf(ctx, queue, name)
		if err == nil {
			err = queue.SetLimits(ctx, name, change(q))
		}
		if err == nil {
			_, q, err = statsOf(ctx, queue, name)
		}
		switch {
		case err != nil:
			return err
		case !a.people():
			return a.print(viewOfLimits(q))
		}
		t := a.table(limitTable()...)
		t.add(limitRow(q)...)
		t.flush()
		return nil
	})
}

// setPool changes the limits of each queue of a pool, and prints them. A change to nil, which drops the limits of an
// operator, also applies to queues that only declare the pool.
func (a *app) setPool(ctx context.Context, queue admin.Admin, pool string, change func(*pawl.QueueStats) *pawl.Limits) error {
	s, err := queue.Stats(ctx)
	if err != nil {
		return err
	}
	var changed []string
	for i := range s.Queues {
		name := s.Queues[i].Name
		_, q, err := statsOf(ctx, queue, name) // read again, because a change of another queue may take long
		if err == nil {
			limits := change(q)
			if q.Limits.Pool.Name != pool && (limits != nil || q.Declared == nil || q.Declared.Pool.Name != pool) {
				continue
			}
			err = queue.SetLimits(ctx, name, limits)
		}
		if err != nil && len(changed) > 0 {
			return fmt.Errorf("change queue %q of pool %q: %w; it was changed for %q alone: run the command again", name, pool, err, changed)
		}
		if err != nil {
			return fmt.Errorf("change queue %q of pool %q: %w", name, pool, err)
		}
		changed = append(changed, name)
	}
	if len(changed) == 0 {
		_, err := findPool(&s, pool)
		return err
	}
	if s, err = queue.Stats(ctx); err != nil {
		return err
	}
	_, err = a.listLimits(&s, func(q *pawl.QueueStats) bool { return slices.Contains(changed, q.Name) })
	return err
}
