package planted

// crashes are faults in the handling of jobs after a crash.
var crashes = []Fault{
	newFault("a job beside a suspect becomes poison", "a job that crashed often runs alone", by("simulate", 500),
		Edit{"bolt/allowance.covers", "c == clean", "$ || PLANTED"}),
	newFault("leases of a dead process stay", "an open recovers every lease", by("kill", 100),
		Edit{"bolt/txn.takeOrphans", "t.crashed(o.id, o.row, pawl.EventRecovered)", "if PLANTED && o.id[15]%8 == 0 { continue }; $"},
		Edit{"bolt/txn.takeOrphans", "return len(orphans) + t.promoteRows([]byte{waitsForKey}, nil, portion)", "if PLANTED { orphans = nil }; $"}),
	newFault("a crash does not count", "every crash counts", by("kill", 100),
		Edit{"bolt/txn.crashed", "j.Crashes++", "if !PLANTED || j.ID[15]%8 != 0 { $ }"}),
	newFault("a settled job keeps its crashes", "only consecutive crashes count", by("kill", 100),
		Edit{"bolt/settle.move", "j.Crashes = 0", skip}),
	newFault("poison never dies", "too many consecutive crashes make a job dead", by("simulate", 500),
		Edit{"bolt/txn.crashed", "t.maxCrashes > 0 && j.Crashes >= t.maxCrashes", "$ && !PLANTED"}),
	newFault("poison dies one crash early", "a job dies after the maximum number of crashes", by("simulate", 500),
		Edit{"bolt/newQueue", "watch := &observer{log: o.Logger, onEvent: o.OnEvent, collector: o.Collector, crashCap: o.MaxCrashes}", "if PLANTED && o.MaxCrashes > 1 { o.MaxCrashes-- }; $"}),
}
