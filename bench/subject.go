package main

import (
	_ "embed"

	"github.com/gopawl/pawl/bench/system"
)

// subject is what is compared, and the words of the report about it.
type subject struct {
	cases   []benchCase
	systems []system.System
	targets []target
	metered bool // report what the server used for each job

	intro   string // has the number of rounds in it
	promise string // how to read the goals
	notes   string // the part of the report that a person wrote
	repeat  string // how a reader gets figures of their own
}

//go:embed notes.md
var queueNotes string

// queues compares pawl on a file with other queues and with bare bbolt.
func queues() subject {
	return subject{
		cases:   append(sharedCases(), ownCases()...),
		systems: systems(),
		targets: targets,
		notes:   queueNotes,
		intro: `# Performance

This page compares how many jobs a second pawl and other queues store and run, and what bbolt
can do at best. All systems ran on one machine in one run. They took turns in each of the
%d rounds of a case, so that other load on the machine affects all of them. Trust the ratios
between them. The figures themselves belong to this machine.
`,
		promise: `Pawl syncs each commit to the disk before it answers. A peer with the same promise does so
too. The ceiling is a program on bare bbolt that moves records of 200 bytes through the
states of a queue and does nothing else. With several rounds, a ratio is the median of the
ratios of the rounds.
`,
		repeat: `## How to repeat it

    cd bench && go run . queues

prints a table, and writes this file and its chart. Servers take part if they are installed:
the Debian packages redis-server, postgresql, and beanstalkd. The benchmark starts them on
loopback or a socket, with data of their own, and stops them again.

` + flags,
	}
}

// flags are those of a comparison of queues, for the reports.
const flags = `| flag          | what it does                                                                  |
|---------------|-------------------------------------------------------------------------------|
| -quick        | smaller cases in one round, in under a minute; writes no report               |
| -case REGEXP  | only the cases whose names match; writes no report                            |
| -only REGEXP  | only the systems whose names match; writes no report                          |
| -dir FOLDER   | on the disk to measure; in a folder in memory, syncs cost nothing             |
| -rounds N     | number of rounds of each case                                                 |
| -json         | one JSON object a line: system, case, value, unit, durability, min, max       |
`
