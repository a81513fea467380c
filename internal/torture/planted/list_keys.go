package planted

// keys are faults in unique and idempotency keys, and in the order of jobs.
var keys = []Fault{
	newFault("a unique key is not freed", "a unique key leads to a job that is there", by("kill", 100),
		Edit{"bolt/txn.giveUpUnique", "pawl.ID(id) == j.ID", "$ && !PLANTED"}),
	newFault("a unique key does not block", "no two jobs of one unique key", append(by("simulate", 500), by("soak", 20_000)...),
		Edit{"bolt/txn.uniqueHolder", "err == nil && driver.BlockedBy(e, p.state)", "$ && !PLANTED"}),
	newFault("an effect is not noted as done", "an effect takes place once", append(by("simulate", 500), by("soak", 20_000)...),
		Edit{"bolt/txn.finishEffect", "t.doneUntil(key, row, t.now.Add(ttl))", skip}),
	newFault("two jobs of one effect run at a time", "jobs of one idempotency key do not run beside one another", by("simulate", 500),
		Edit{"bolt/selection.admit", "effect.holder != pawl.ID{}", "$ && !PLANTED"}),
	newFault("blocked jobs stay blocked", "a blocked job is ready when its key is free", by("soak", 20_000),
		Edit{"bolt/txn.freeEffect", "from != nil", "$ && !PLANTED"}),
	newFault("priority does not count", "jobs come in the order of their priorities", by("simulate", 500),
		Edit{"bolt/appendOrder", "b = append(b, byte(127-int(e.Priority)))", "if PLANTED { e = &pawl.Envelope{NotBefore: e.NotBefore, Seq: e.Seq} }; $"}),
	newFault("a sequence is used again after a restart", "sequence numbers rise for the life of the file", by("soak", 50_000),
		Edit{"bolt/newQueue", "q.seq.Store(s.jobs.Sequence())", "$; if PLANTED { q.seq.Store(s.jobs.Sequence() / 2) }"}),
	newFault("a delayed job leads to another lane", "a promoted job has its place among the ready jobs", by("kill", 100),
		Edit{"bolt/txn.place", "row := delayedRow{indexRow{j.ID, j.flags()}, ready}", "if PLANTED && j.Attempts > 0 { ready[4] ^= 1 }; $"}),
	newFault("checksums of rows are not compared", "a changed row is detected", by("hostile", 2000),
		Edit{"bolt/unseal", "binary.LittleEndian.Uint32(sealed[n:]) != sum(key, sealed[:n])", "$ && !PLANTED"}),
}
