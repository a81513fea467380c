package planted

// crashes are faults in what becomes of jobs whose process died.
var crashes = []Fault{
	{
		Name: "a bystander is condemned as poison", Breaks: "a job that crashed often runs apart from others",
		Edits: []Edit{{"bolt/allowance.covers", "c == calm", "$ || PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "leases of a dead process stay", Breaks: "every lease is taken back at open",
		Edits: []Edit{
			{"bolt/txn.takeOrphans", "t.crashed(o.id, o.row, pawl.EventRecovered)", "if PLANTED && o.id[15]%8 == 0 { continue }; $"},
			{"bolt/txn.takeOrphans", "return len(orphans) + t.promoteRows([]byte{waitsForKey}, nil, portion)", "if PLANTED { orphans = nil }; $"},
		},
		By: []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a crash does not count", Breaks: "a job that crashed is known for that",
		Edits: []Edit{{"bolt/txn.crashed", "j.Crashes++", "if !PLANTED || j.ID[15]%8 != 0 { $ }"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "crashes are not forgiven", Breaks: "only crashes in a row count",
		Edits: []Edit{{"bolt/move", "j.Crashes = 0", skip}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "poison never dies", Breaks: "a job that crashes too often in a row is dead",
		Edits: []Edit{{"bolt/txn.crashed", "t.maxCrashes > 0 && j.Crashes >= t.maxCrashes", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "poison dies one crash early", Breaks: "a job may crash as often as the options say",
		Edits: []Edit{{"bolt/newQueue", "watch := &observer{log: o.Logger, onEvent: o.OnEvent, collector: o.Collector, crashCap: o.MaxCrashes}", "if PLANTED && o.MaxCrashes > 1 { o.MaxCrashes-- }; $"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
}
