package planted

// crashes are faults in what becomes of jobs whose process died.
var crashes = []Fault{
	{
		Name: "a bystander is condemned as poison", Breaks: "a job that crashed often runs apart from others",
		Edits: []Edit{{"bolt/pick.go", "	return c == calm || a.idle > 0 && (c == suspect || a.repeat)\n", "	return c == calm || PLANTED || a.idle > 0 && (c == suspect || a.repeat)\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "leases of a dead process stay", Breaks: "every lease is taken back at open",
		Edits: []Edit{{"bolt/recover.go", "	for _, o := range orphans {\n", "	for _, o := range orphans {\n		if PLANTED && o.id[15]%8 == 0 {\n			continue\n		}\n"},
			{"bolt/recover.go", "	return len(orphans) + t.promoteRows(", "	if PLANTED {\n		orphans = nil\n	}\n	return len(orphans) + t.promoteRows("}},
		By: []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a crash does not count", Breaks: "a job that crashed is known for that",
		Edits: []Edit{{"bolt/moves.go", "	j.Crashes++\n", "	if !PLANTED || j.ID[15]%8 != 0 {\n		j.Crashes++\n	}\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "crashes are not forgiven", Breaks: "only crashes in a row count",
		Edits: []Edit{{"bolt/settle.go", "		j.Crashes = 0\n", "		if !PLANTED {\n			j.Crashes = 0\n		}\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "poison never dies", Breaks: "a job that crashes too often in a row is dead",
		Edits: []Edit{{"bolt/moves.go", "	case t.maxCrashes > 0 && j.Crashes >= t.maxCrashes:\n", "	case t.maxCrashes > 0 && j.Crashes >= t.maxCrashes && !PLANTED:\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "poison dies one crash early", Breaks: "a job may crash as often as the options say",
		Edits: []Edit{{"bolt/queue.go", "	watch := &observer{log: o.Logger, ", "	if PLANTED && o.MaxCrashes > 1 {\n		o.MaxCrashes--\n	}\n	watch := &observer{log: o.Logger, "}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
}
