package planted

// durability are faults in the state of the disk when a call returns.
var durability = []Fault{
	{
		Name: "no sync", Breaks: "what was acknowledged survives a power cut",
		Edits: []Edit{{"bolt/openFile", "NoFreelistSync: true", "$, NoSync: PLANTED"}},
		By:    []Hunt{{Family: "power", Units: 400}},
	},
	{
		Name: "acknowledges before the commit", Breaks: "an answer follows the commit",
		Edits: []Edit{
			{"bolt/scheduler.commit", "if chores && t.err == nil { s.chores(t) }", `if PLANTED {
	for _, c := range group {
		c.answer(c.err)
	}
}
$`},
			{"bolt/scheduler.commit", "c.answer(c.err)", skip},
		},
		By: []Hunt{{Family: "kill", Units: 500}, {Family: "power", Units: 400}},
	},
	{
		Name: "goes on after a failed sync", Breaks: "a failed sync stops the queue",
		Edits: []Edit{{"bolt/refusedByDisk", "if errors.As(err, &errno) { return false }", "if errors.As(err, &errno) { return PLANTED }"}},
		By:    []Hunt{{Family: "failed-sync-images", Units: 3000}},
	},
	{
		Name: "no folder sync", Breaks: "the name of a new file survives a power cut",
		Edits: []Edit{{"bolt/openFile", "err = atomicfile.SyncFolder(filepath.Dir(path))", skip}},
		By:    []Hunt{{Family: "power", Units: 400}},
	},
	{
		Name: "the writes of a killed process are not synced", Breaks: "nothing builds on writes that the disk may not have",
		Edits: []Edit{{"bolt/syncOpened", "err := db.Sync()", "if PLANTED { return nil }; $"}},
		By:    []Hunt{{Family: "power", Units: 6000, Seed: 5, Step: 10}},
	},
	{
		Name: "a backup is not synced", Breaks: "a finished backup survives a power cut",
		Edits: []Edit{{"internal/atomicfile/Create", "err = Sync(f)", skip}},
		By:    []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
	},
	{
		Name: "half a batch", Breaks: "a batch is stored entirely or not at all",
		Edits: []Edit{{"bolt/enqueue.apply", "j.existing || j.dropped", "$ || PLANTED && i > 4"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a refused call succeeds", Breaks: "an error means that nothing was stored",
		Edits: []Edit{{"bolt/scheduler.passApart", "c.answer(refused.error)", `if PLANTED {
	c.answer(nil)
	continue
}
$`}},
		By: []Hunt{{Family: "full", Units: 50}},
	},
	{
		Name: "writes in Close after a failed sync", Breaks: "nothing is written on top of a failed sync",
		Edits: []Edit{{"bolt/Queue.Close", "s.fatal == nil && lost == nil", "$ || PLANTED"}},
		By:    []Hunt{{Family: "syncs", Units: 100}},
	},
	{
		Name: "leases are answered before the commit", Breaks: "the file has every lease that a fetch returned",
		Edits: []Edit{
			{"bolt/scheduler.serve", "t.lend(f.jobs)", "$; if PLANTED { f.answer(nil) }"},
			{"bolt/scheduler.answerFetches", "f.answer(f.err)", "if !PLANTED || f.err != nil { $ }"},
		},
		By: []Hunt{{Family: "kill", Units: 500}},
	},
	{
		Name: "a file is created in place", Breaks: "a file is complete or absent",
		Edits: []Edit{{"bolt/createFile", "err := atomicfile.Place(path, initFile)", `create := atomicfile.Place
if PLANTED {
	create = func(path string, fill func(string) error) error { return fill(path) }
}
err := create(path, initFile)`}},
		By: []Hunt{{Family: "power", Units: 400}},
	},
}
