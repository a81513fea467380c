// Package itself lets the test binary of an example run the program itself, in a process that a test can kill.
package itself

import (
	"context"
	"os"
	"os/exec"
)

// variable makes a test binary the program.
const variable = "PAWL_EXAMPLE_CHILD"

// Main is what TestMain calls: it runs the program in a child, and otherwise the tests, and then ends the process.
func Main(main func(), tests func() int) {
	if os.Getenv(variable) == "" {
		os.Exit(tests())
	}
	main()
	os.Exit(0)
}

// Command returns a child that runs the program with arguments. It is killed when the context ends.
func Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), variable+"=1")
	return cmd
}
