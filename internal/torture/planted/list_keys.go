package planted

// keys are faults in unique and idempotency keys, and in the order of jobs.
var keys = []Fault{
	{
		Name: "a unique key is not freed", Breaks: "a unique key leads to a job that is there",
		Edits: []Edit{{"bolt/txn.giveUpUnique", "pawl.ID(id) == j.ID", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a unique key does not block", Breaks: "no two jobs of one unique key",
		Edits: []Edit{{"bolt/txn.uniqueHolder", "err == nil && e.BlockedBy(p.state)", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}, {Family: "soak", Units: 20_000}},
	},
	{
		Name: "an effect is not noted as done", Breaks: "an effect takes place once",
		Edits: []Edit{{"bolt/txn.finishEffect", "t.doneUntil(key, row, t.now.Add(ttl))", skip}},
		By:    []Hunt{{Family: "simulate", Units: 500}, {Family: "soak", Units: 20_000}},
	},
	{
		Name: "two jobs of one effect run at a time", Breaks: "jobs of one idempotency key do not run beside one another",
		Edits: []Edit{{"bolt/selection.admit", "effect.holder != pawl.ID{}", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "blocked jobs stay blocked", Breaks: "a blocked job is ready when its key is free",
		Edits: []Edit{{"bolt/txn.freeEffect", "from != nil", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "priority does not count", Breaks: "jobs come in the order of their priorities",
		Edits: []Edit{{"bolt/appendOrder", "b = append(b, byte(127-int(e.Priority)))", "if PLANTED { e = &pawl.Envelope{NotBefore: e.NotBefore, Seq: e.Seq} }; $"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a sequence is used again after a restart", Breaks: "sequence numbers rise for the life of the file",
		Edits: []Edit{{"bolt/newQueue", "q.seq.Store(s.jobs.Sequence())", "$; if PLANTED { q.seq.Store(s.jobs.Sequence() / 2) }"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "a delayed job leads to another lane", Breaks: "a promoted job has its place among the ready jobs",
		Edits: []Edit{{"bolt/txn.place", "row := delayedRow{indexRow{j.ID, j.flags()}, ready}", "if PLANTED && j.Attempts > 0 { ready[4] ^= 1 }; $"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "checksums of rows are not compared", Breaks: "a changed row is detected",
		Edits: []Edit{{"bolt/unseal", "binary.LittleEndian.Uint32(sealed[n:]) != sum(key, sealed[:n])", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
}
