// Package command is the command line of the programs that try families of faults. It prints a
// table, and the seed that repeats each violation.
package command

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

// Command is a program that tries families.
type Command struct {
	Line     string // how it is called, for its output
	Families []*harness.Family

	// Each and Night limit the time of all tries: Each by default, as for each change, and Night
	// with -night. Setup and builds take additional time.
	Each, Night time.Duration

	// Summary returns a sentence for the end of the output and of the report. It may be nil.
	Summary func() string
}

// Main runs the role that the environment names, or else the command line of the program. It does
// not return.
func (c *Command) Main() {
	harness.Main()
	harness.CollectLess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := c.run(ctx, os.Args[1:], os.Stdout, os.Stderr)
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

// run returns the exit code: 1 after a violation, 2 for an invalid command line.
func (c *Command) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := c.parse(args, stderr)
	if err != nil {
		return 2
	}
	chosen, err := c.choose(s.names)
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
	harness.Violations(stdout, c.Line, results)
	if c.Summary != nil {
		fmt.Fprintf(stdout, "\n%s\n", c.Summary())
	}
	if s.report != "" {
		if err := c.writeReport(s.report, results); err != nil {
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

func (c *Command) parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&s.budget, "budget", 0, fmt.Sprintf("time limit for all tries; setup and builds take longer (default %v, with -night %v)", c.Each, c.Night))
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
		if s.budget = c.Each; s.night {
			s.budget = c.Night
		}
	}
	return s, nil
}

// choose returns the families with these names, or all.
func (c *Command) choose(names []string) (chosen []*harness.Family, err error) {
	if len(names) == 0 {
		return c.Families, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(c.Families, func(f *harness.Family) bool { return f.Name == name })
		if i < 0 {
			var known []string
			for _, f := range c.Families {
				known = append(known, f.Name)
			}
			return nil, fmt.Errorf("there is no family %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, c.Families[i])
	}
	return chosen, nil
}

// least is the time that a family gets to begin a try, even if the families before it took all
// the time.
const least = time.Second

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
		part := max(least, time.Until(end)*time.Duration(f.Share)/time.Duration(shares))
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
		case r.Failed(), r.Missing == "" && r.Tried == 0: // something may be stuck
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
