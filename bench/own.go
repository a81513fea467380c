package main

import (
	"time"

	"github.com/gopawl/pawl/bench/system"
)

// The cases that need more than a Queue, or more time than peers would give them.

const (
	smallestBacklog = 10_000
	portion         = 10_000                 // jobs that a backlog grows by before it shrinks again
	settling        = 2 * time.Second        // until a process that started is idle, at most
	poll            = 2 * time.Millisecond   // of a count that should come to 0
	glance          = 100 * time.Millisecond // from one look at an idle process to the next
	rowSize         = 512                    // bytes in the file for a job of 100 B, roughly
	loneRounds      = 100                    // commits of which the lone one is the median
)

// Units.
const (
	seconds   = "s"
	perMinute = "/min"
	ratio     = "ratio"
)

func ownCases() []benchCase {
	cases := []benchCase{{
		name:    "backlog-10k",
		about:   "10 thousand ready jobs: 64 producers add 10 thousand, then 16 no-op workers take as many, again and again",
		peers:   func(t *trial, q system.Queue) error { return t.backlogged(q, smallestBacklog) },
		ceiling: func(t *trial) error { return t.ceilingBacklog(smallestBacklog) },
	}}
	for _, b := range []struct {
		name, words string
		jobs        int
	}{
		{"100k", "100 thousand", 100_000},
		{"1M", "a million", 1_000_000},
		{"10M", "10 million", 10_000_000},
	} {
		cases = append(cases, benchCase{
			name:    "backlog-" + b.name,
			about:   "the same on " + b.words + " ready jobs",
			own:     func(t *trial) error { return t.ownBacklog(b.jobs) },
			once:    b.jobs > 1_000_000,
			backlog: b.jobs,
			ceiling: func(t *trial) error { return t.ceilingBacklog(b.jobs) },
		})
	}
	return append(cases,
		benchCase{
			name:    "due",
			about:   "a million delayed jobs fall due in one second, while one producer goes on; the ceiling is a lone commit",
			own:     fallingDue,
			ceiling: loneCommit,
		},
		benchCase{
			name:  "open",
			about: "opening a file of a million ready jobs: after a clean close, and after kills, with and without 100 thousand leased jobs",
			own:   opening,
		},
		benchCase{
			name:  "idle",
			about: "a process that holds 100 thousand jobs delayed until tomorrow, and 16 idle workers, beside a program that does nothing",
			own:   idling,
			once:  true,
		},
		benchCase{
			name:  "space",
			about: "the file after a million jobs through a backlog of a thousand, and the same with a read transaction held open at first",
			own:   spacing,
			once:  true,
		},
		benchCase{
			name:    "allocs",
			about:   "enqueue and run of a job, 64 a commit; the ceiling moves 64 a commit",
			own:     allocating,
			ceiling: ceilingAllocs,
		},
		benchCase{
			name:    "writes",
			about:   "bytes written to the file for each byte of 64 KiB payloads, from enqueue to ack",
			own:     writing,
			ceiling: ceilingWrites,
		},
	)
}
