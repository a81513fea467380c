package main

import (
	"github.com/gopawl/pawl/internal/torture/crash"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// families are all there are, in the order of the table.
var families = []*harness.Family{
	crash.Kill,
}
