// Torture tries to make the queue break its promises. It kills processes, simulates power
// cuts, fails system calls, fills disks, damages files and steps clocks, and counts the
// violations. docs/reliability.md explains each family.
//
//	go run ./internal/torture                     # every family, as for each change
//	go run ./internal/torture -night              # the tries of a night
//	go run ./internal/torture -budget 1m          # less time
//	go run ./internal/torture -family kill -seed 7
//
// It prints a table, and the seed that repeats each violation. The exit code is 1 after a
// violation. The table names what this machine lacks for a family.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// command is the command line of this program in its output.
const command = "go run ./internal/torture"

func main() {
	harness.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the command line.
type settings struct {
	budget time.Duration
	night  bool
	names  []string
	seed   uint64
	once   bool
	disk   string
	report string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	chosen, err := choose(s.names)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if s.once && len(chosen) != 1 {
		fmt.Fprintln(stderr, "-seed repeats a try of one family; name the family with -family")
		return 2
	}
	results := s.all(ctx, chosen, stderr)
	harness.Table(stdout, results)
	harness.Violations(stdout, command, results)
	if s.report != "" {
		if err := writeReport(s.report, results); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "interrupted")
		return 1
	}
	return verdict(stdout, results)
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&s.budget, "budget", 0, "time limit for all tries; setup and builds take longer (default 13m, with -night 3h)")
	flags.BoolVar(&s.night, "night", false, "run the tries of a night")
	names := flags.String("family", "", "comma-separated list of families (default all)")
	flags.Uint64Var(&s.seed, "seed", 0, "repeat the try of one family with this seed")
	flags.Uint64Var(&s.seed, "from", 0, "first seed (default random)")
	flags.StringVar(&s.disk, "disk", "", "folder on the disk to test (default the folder for temporary files)")
	flags.StringVar(&s.report, "report", "", "write the table into this document")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, err)
		return s, err
	}
	if *names != "" {
		s.names = strings.Split(*names, ",")
	}
	given := false
	flags.Visit(func(f *flag.Flag) {
		s.once = s.once || f.Name == "seed"
		given = given || f.Name == "seed" || f.Name == "from"
	})
	if !given {
		s.seed = rand.Uint64N(1 << 40)
	}
	if s.budget == 0 {
		if s.budget = 13 * time.Minute; s.night {
			s.budget = 3 * time.Hour
		}
	}
	return s, nil
}

// choose returns the families with these names, or all.
func choose(names []string) (chosen []*harness.Family, err error) {
	if len(names) == 0 {
		return families, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(families, func(f *harness.Family) bool { return f.Name == name })
		if i < 0 {
			var known []string
			for _, f := range families {
				known = append(known, f.Name)
			}
			return nil, fmt.Errorf("there is no family %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, families[i])
	}
	return chosen, nil
}

// all runs one family after another. Each may use its share of the remaining time.
func (s settings) all(ctx context.Context, chosen []*harness.Family, stderr io.Writer) (results []harness.Result) {
	end := time.Now().Add(s.budget)
	shares := 0
	for _, f := range chosen {
		shares += f.Share
	}
	progress := &harness.Progress{W: stderr, Terminal: isTerminal(stderr)}
	for _, f := range chosen {
		if ctx.Err() != nil {
			break
		}
		goal := f.PR
		if s.night {
			goal = f.Nightly
		}
		part := max(1, time.Until(end)*time.Duration(f.Share)/time.Duration(shares))
		shares -= f.Share
		r := f.Run(ctx, harness.Plan{
			Goal: goal, Time: part, Seed: s.seed, Once: s.once, Folder: s.disk, OnTry: progress.Start(f, goal),
		})
		results, end = append(results, r), end.Add(r.Setup)
		progress.Done()
	}
	return results
}

// verdict prints a summary and returns the exit code.
func verdict(w io.Writer, results []harness.Result) int {
	var failed, short, missing []string
	for i := range results {
		switch r := &results[i]; {
		case r.Failed(), r.Missing == "" && r.Tried == 0: // something may have stuck
			failed = append(failed, r.Name)
		case r.Missing != "":
			missing = append(missing, r.Name)
		case r.Short():
			short = append(short, r.Name)
		}
	}
	fmt.Fprintln(w)
	if len(missing) > 0 {
		fmt.Fprintf(w, "not tried on this machine: %s\n", strings.Join(missing, ", "))
	}
	if len(short) > 0 {
		fmt.Fprintf(w, "out of time: %s\n", strings.Join(short, ", "))
	}
	if len(failed) > 0 {
		fmt.Fprintf(w, "VIOLATIONS, or no try in time: %s\n", strings.Join(failed, ", "))
		return 1
	}
	fmt.Fprintln(w, "no violation")
	return 0
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
