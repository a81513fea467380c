package planted

// durability are faults in the state of the disk when a call returns.
var durability = []Fault{
	newFault("no sync", "what was acknowledged survives a power cut", by("power", 400),
		Edit{"bolt/openFile", "NoFreelistSync: true", "$, NoSync: PLANTED"}),
	newFault("acknowledges before the commit", "an answer follows the commit", append(by("kill", 500), by("power", 400)...),
		Edit{"bolt/scheduler.commit", "if maintain && t.err == nil { s.maintain(t) }", `if PLANTED {
	for _, c := range group {
		c.answer(c.err)
	}
}
$`},
		Edit{"bolt/scheduler.commit", "c.answer(c.err)", skip}),
	newFault("goes on after a failed sync", "a failed sync stops the queue", by("failed-sync-images", 3000),
		Edit{"bolt/refusedByDisk", "if errors.As(err, &errno) { return false }", "if errors.As(err, &errno) { return PLANTED }"}),
	newFault("no folder sync", "the name of a new file survives a power cut", by("power", 400),
		Edit{"bolt/openFile", "err = atomicfile.SyncFolder(filepath.Dir(path))", skip}),
	newFault("the writes of a killed process are not synced", "nothing builds on writes that the disk may not have", []Hunt{{Family: "power", Units: 6000, Seed: 5, Step: 10}},
		Edit{"bolt/syncOpened", "err := db.Sync()", "if PLANTED { return nil }; $"}),
	newFault("a backup is not synced", "a finished backup survives a power cut", []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
		Edit{"internal/atomicfile/Create", "err = Sync(f)", skip}),
	newFault("half a batch", "a batch is stored entirely or not at all", by("kill", 100),
		Edit{"bolt/enqueue.apply", "j.existing || j.dropped", "$ || PLANTED && i > 4"}),
	newFault("a refused call succeeds", "an error means that nothing was stored", by("full", 50),
		Edit{"bolt/scheduler.passApart", "c.answer(refused.error)", `if PLANTED {
	c.answer(nil)
	continue
}
$`}),
	newFault("writes in Close after a failed sync", "nothing is written on top of a failed sync", by("syncs", 100),
		Edit{"bolt/Queue.Close", "s.fatal == nil && lost == nil", "$ || PLANTED"}),
	newFault("leases are answered before the commit", "the file has every lease that a fetch returned", by("kill", 500),
		Edit{"bolt/scheduler.serve", "t.grantJobs(f.jobs)", "$; if PLANTED { f.answer(nil) }"},
		Edit{"bolt/scheduler.answerFetches", "f.answer(f.err)", "if !PLANTED || f.err != nil { $ }"}),
	newFault("a file is created in place", "a file is complete or absent", by("power", 400),
		Edit{"bolt/createFile", "err := atomicfile.Place(path, initFile)", `create := atomicfile.Place
if PLANTED {
	create = func(path string, fill func(string) error) error { return fill(path) }
}
err := create(path, initFile)`}),
}
