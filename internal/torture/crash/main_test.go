package crash

import (
	"os"
	"testing"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}
