package need

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder records how a test ends.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper()      {}
func (r *recorder) Fatal(...any) { r.end = "fatal" }
func (r *recorder) Skip(...any)  { r.end = "skip" }

// Rule: a test whose server is missing is skipped, and fails where servers are required.
func TestServer(t *testing.T) {
	for _, c := range []struct{ missing, required, end string }{
		{"", "", ""}, {"", "1", ""}, {"no server", "", "skip"}, {"no server", "1", "fatal"},
	} {
		t.Setenv(Required, c.required)
		r := new(recorder)
		Server(r, c.missing)
		require.Equal(t, c.end, r.end, "%+v", c)
	}
}
