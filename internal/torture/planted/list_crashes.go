package planted

// crashes are faults in the handling of jobs after a crash.
var crashes = []Fault{
	{
		Name: "a job beside a suspect becomes poison", Breaks: "a job that crashed often runs alone",
		Edits: []Edit{{"bolt/allowance.covers", "c == calm", "$ || PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "leases of a dead process stay", Breaks: "an open recovers every lease",
		Edits: []Edit{
			{"bolt/txn.takeOrphans", "t.crashed(o.id, o.row, pawl.EventRecovered)", "if PLANTED && o.id[15]%8 == 0 { continue }; $"},
			{"bolt/txn.takeOrphans", "return len(orphans) + t.promoteRows([]byte{waitsForKey}, nil, portion)", "if PLANTED { orphans = nil }; $"},
		},
		By: []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a crash does not count", Breaks: "every crash counts",
		Edits: []Edit{{"bolt/txn.crashed", "j.Crashes++", "if !PLANTED || j.ID[15]%8 != 0 { $ }"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a settled job keeps its crashes", Breaks: "only consecutive crashes count",
		Edits: []Edit{{"bolt/move", "j.Crashes = 0", skip}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "poison never dies", Breaks: "too many consecutive crashes make a job dead",
		Edits: []Edit{{"bolt/txn.crashed", "t.maxCrashes > 0 && j.Crashes >= t.maxCrashes", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "poison dies one crash early", Breaks: "a job dies after the maximum number of crashes",
		Edits: []Edit{{"bolt/newQueue", "watch := &observer{log: o.Logger, onEvent: o.OnEvent, collector: o.Collector, crashCap: o.MaxCrashes}", "if PLANTED && o.MaxCrashes > 1 { o.MaxCrashes-- }; $"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
}
