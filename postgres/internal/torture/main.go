// Torture tries to make the queue over PostgreSQL break its promises. It kills clients and servers, cuts
// connections, makes partitions, and promotes standbys, and counts the violations.
// docs/reliability.md explains each family.
//
//	go run ./internal/torture                     # every family, as for each change
//	go run ./internal/torture -night              # the tries of a night
//	go run ./internal/torture -family pg-cut -seed 7
//
// It needs the programs of a PostgreSQL server, which Debian's package postgresql has. Otherwise it is
// like the command of the same name in the root module. It is internal, because it is a tool of this
// repository and no command for users, and in this module, because it needs pgx.
package main

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl/internal/torture/command"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/postgres/internal/torture/families"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

var torture = command.Command{
	Line: "go run -C postgres ./internal/torture", Families: families.All, Each: 6 * time.Minute, Night: 3 * time.Hour,
	Summary: func() string {
		return fmt.Sprintf("The families over PostgreSQL acknowledged %s jobs.", harness.Thousands(int(scene.Acknowledged.Load())))
	},
}

func main() { torture.Main() }
