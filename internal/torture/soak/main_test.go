package soak

import (
	"testing"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func TestMain(m *testing.M) {
	harness.Main()
	m.Run()
}
