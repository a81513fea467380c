package main

import (
	"github.com/gopawl/pawl/internal/torture/crash"
	"github.com/gopawl/pawl/internal/torture/faults"
	"github.com/gopawl/pawl/internal/torture/flows"
	"github.com/gopawl/pawl/internal/torture/fuzz"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/hostile"
	"github.com/gopawl/pawl/internal/torture/planted"
	"github.com/gopawl/pawl/internal/torture/power"
	"github.com/gopawl/pawl/internal/torture/sim"
	"github.com/gopawl/pawl/internal/torture/soak"
	"github.com/gopawl/pawl/internal/torture/ticks"
)

// families are all families, in the order of the table. The last one plants faults under all others.
var families = append(tried, planted.Over(tried))

var tried = []*harness.Family{
	crash.Kill,
	crash.Admin,
	power.Power,
	power.FailedSync,
	power.Device,
	hostile.Library,
	hostile.Salvage,
	hostile.Jobctl,
	fuzz.Fuzz,
	faults.Syscalls,
	faults.RandomSyscalls,
	faults.Results,
	faults.Cursors,
	faults.Groups,
	faults.Prerequisites,
	faults.Syncs,
	faults.Full,
	faults.FullMemory,
	faults.FullDisk,
	sim.Random,
	sim.Clock,
	soak.Soak,
	flows.Workflow,
	ticks.Schedule,
}
