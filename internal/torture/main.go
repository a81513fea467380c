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
	"time"

	"github.com/gopawl/pawl/internal/torture/command"
)

var torture = command.Command{
	Line: "go run ./internal/torture", Families: families, Each: 16 * time.Minute, Night: 3 * time.Hour,
}

func main() { torture.Main() }
