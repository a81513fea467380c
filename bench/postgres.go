package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/bench/system"
)

// manyWorkers is for a client that fetches for all its workers at once.
const manyWorkers = 1000

//go:embed postgres_notes.md
var postgresNotes string

// onPostgres compares pawl with River on one server of PostgreSQL.
func onPostgres() subject {
	of := subject{
		metered: true,
		systems: []system.System{system.PawlPostgres(), system.RiverPostgres()},
		targets: postgresTargets,
		notes:   postgresNotes,
		intro: `# Performance over PostgreSQL

This page compares how many jobs a second pawl and River store and run on one server of
PostgreSQL, and what the server pays for each: processor time of all its processes, and bytes of
its write-ahead log. Both ran in one run and took turns in each of the %d rounds of a case, so
that other load on the machine affects both. Trust the ratios. The figures belong to this machine,
where the server shares two cores with its clients.
`,
		promise: `Both sync each commit to the disk before they answer. With several rounds, a ratio is the
median of the ratios of the rounds.
`,
		repeat: `## How to repeat it

    cd bench && go run . postgres

prints a table, and writes this file. It needs the Debian package postgresql. The benchmark starts
a server on a socket, with data of its own, and stops it again.

` + flags,
	}
	of.cases = serverCases()
	of.cases = append(of.cases, benchCase{
		name:  "drain-1000",
		about: "1 000 no-op workers of one process empty a full queue",
		peers: func(t *trial, q system.Queue) error { return t.draining(q, manyWorkers) },
	})
	for _, n := range []int{1, 2, 4} {
		of.cases = append(of.cases, benchCase{
			name:  fmt.Sprintf("processes-%d", n),
			about: fmt.Sprintf("processes with 16 no-op workers each empty a full queue: %d", n),
			peers: func(t *trial, q system.Queue) error { return t.processes(q, n) },
		})
	}
	return of
}

var postgresTargets = []target{
	goal("drain, 16 no-op workers", "5 times River", "drain", 5),
	goal("drain, 1 000 no-op workers", "ahead of River", "drain-1000", 1),
	goal("64 producers", "8 times River", "producers", 8),
	goal("bulk of 1 000", "1.5 times River", "bulk", 1.5),
	{
		name: "latency on an idle queue", goal: "no worse than River",
		parts: []part{
			{atMost, 1, named(" of River's at p50", pawlBy("latency/p50", riverName, "latency/p50"))},
			{atMost, 1, named(" of River's at p99", pawlBy("latency/p99", riverName, "latency/p99"))},
		},
	},
	{
		name: "processor time of the server for a job, drain", goal: "a third of River's",
		parts: []part{{atMost, 0.333, named(" of River's", pawlBy("drain/server-cpu", riverName, "drain/server-cpu"))}},
	},
}

var riverName = system.RiverPostgres().Name

func goal(name, words, figure string, times float64) target {
	return target{name: name, goal: words, parts: []part{
		{atLeast, times, named(" times River", pawlBy(figure, riverName, figure))},
	}}
}

// roleWork works through a queue that several processes share. Its arguments are the name of
// the system and the address of its server. It begins with a line of input, and at the end of the
// input it prints how many jobs it has done.
const roleWork = "work"

func workRole(args []string) error {
	systems := onPostgres().systems
	i := slices.IndexFunc(systems, func(s system.System) bool { return s.Name == args[0] })
	if i < 0 {
		return fmt.Errorf("no system %q", args[0])
	}
	q, err := systems[i].Join(context.Background(), "", &system.Server{Addr: args[1]})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, readyLine); err != nil {
		return err
	}
	var line [1]byte
	if _, err := io.ReadFull(os.Stdin, line[:]); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var done atomic.Int64
	worked := make(chan error, 1)
	go func() {
		worked <- q.Work(ctx, workers, func([]byte) {
			if ctx.Err() == nil {
				done.Add(1)
			}
		})
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	stop()
	if err = errors.Join(err, <-worked, q.Close()); err == nil {
		_, err = fmt.Println(done.Load())
	}
	return err
}

// processes has n processes empty a full queue, as far as they come.
func (t *trial) processes(q system.Queue, n int) error {
	stored := 0
	for range n { // for as long as all together may take
		more, err := t.fill(q, t.full, small)
		if err != nil {
			return err
		}
		stored += more
	}
	var children []*process
	defer func() {
		for _, p := range children {
			p.kill()
		}
	}()
	for range n {
		p, err := t.start(roleWork, t.system.Name, t.server.Addr)
		if err != nil {
			return err
		}
		children = append(children, p)
	}
	if err := t.mark(); err != nil {
		return err
	}
	began := time.Now()
	for _, p := range children {
		if _, err := io.WriteString(p.stdin, "\n"); err != nil {
			return err
		}
	}
	time.Sleep(t.limit)
	took := time.Since(began)
	total := 0
	for _, p := range children {
		if err := p.stdin.Close(); err != nil {
			return err
		}
	}
	for _, p := range children {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			return err
		}
		done, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		total += done
	}
	if total >= stored {
		return fmt.Errorf("all %d jobs were done before the time was up", stored)
	}
	t.rate("", total, took)
	return t.perJob(total)
}
