// Package need says what becomes of a test whose server or tool the machine lacks.
package need

import (
	"os"
	"testing"
)

// Required is the environment variable that makes such a test fail. CI sets it where it installs them.
const Required = "PAWL_SERVERS_REQUIRED"

// Server skips a test, or fails it where CI has installed them. Missing says what the machine lacks, and is
// "" if it lacks nothing.
func Server(t testing.TB, missing string) {
	t.Helper()
	switch {
	case missing == "":
	case os.Getenv(Required) != "":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}
