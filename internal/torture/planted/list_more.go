package planted

// answers are faults in the answers to callers.
var answers = []Fault{
	newFault("an unknown outcome is a success", "a failed sync is no success", by("failed-sync-images", 3000),
		Edit{"bolt/scheduler.poison", "c.answer(unknown)", "if PLANTED { unknown = nil }; $"}),
	newFault("events come before the commit", "an event is durable", by("soak", 20_000),
		Edit{"bolt/scheduler.write", "err = s.commitGuarded(tx)", `if PLANTED {
	s.observer.emit(t.events)
	t.events = nil
}
$`}),
	newFault("an ack of a lost lease is no error", "a holder learns that its lease is lost", by("simulate", 200),
		Edit{"bolt/settlements.apply", "op.errs[i] = err", skip}),
	newFault("a call does not wake the scheduler", "every call gets an answer", by("soak", 20_000),
		Edit{"bolt/intake.offer", "in.ring()", "if !PLANTED || n > 0 { $ }"}),
	newFault("a handler does not learn that its job was cancelled", "a cancel reaches the running handler", by("soak", 20_000),
		Edit{"bolt/leaseTable.takeNote", "g.cancelled.Fire()", skip}),
	newFault("a failed Update is committed", "a function of Update that fails stores nothing", by("soak", 20_000),
		Edit{"bolt/scheduler.update", "err := s.await(u)", "$; if PLANTED { err = nil }"}),
	newFault("a heartbeat extends nothing", "no other worker gets a leased job", by("simulate", 200),
		Edit{"worker/session.beat", "s.extend(ctx)", skip}),
	newFault("the pause of a queue is ignored", "a paused queue gives no jobs", by("soak", 20_000),
		Edit{"bolt/selection.open", "!row.paused", "$ || PLANTED"}),
	newFault("a fetch brings one job too many", "a fetch returns no more jobs than requested", by("simulate", 200),
		Edit{"bolt/selection.run", "len(s.jobs) < s.request.Max", "($ || PLANTED && len(s.jobs) == s.request.Max)"}),
	newFault("a corrected clock is not noticed", "a job is promoted within a minute after a correction of the clock", by("clock", 200),
		Edit{"bolt/scheduler.untilNext", "wait = max(wait, least)", "$; if PLANTED { wait = max(wait, s.due.Sub(s.now())) }"}),
}

// leftovers are faults that leave rows or files behind.
var leftovers = []Fault{
	newFault("a deadline stays behind", "a finished job leaves no deadline", by("kill", 100),
		Edit{"bolt/txn.forgetDeadline", "t.delete(t.expiry, deadlineKey(nil, j.Envelope))", skip}),
	newFault("a deadline is not watched", "a job dies at its deadline", by("kill", 100),
		Edit{"bolt/txn.overdue", "t.put(t.expiry, key, seal(key, nil))", skip}),
	newFault("a unique key is not taken", "no two jobs of one unique key", by("soak", 20_000),
		Edit{"bolt/txn.takeUnique", `j.UniqueKey != ""`, "$ && !PLANTED"}),
	newFault("a record is not retained", "a completed job is kept for its retention", by("kill", 100),
		Edit{"bolt/txn.succeed", "j.Retain <= 0", "$ || PLANTED"}),
	newFault("a compaction is not synced", "a finished compaction survives a power cut", []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
		Edit{"bolt/reader.compactInto", "err = dst.Sync()", skip}),
	newFault("a temporary file stays", "no temporary file remains", by("soak", 20_000),
		Edit{"internal/atomicfile/Place", "err = errors.Join(err, ignoreNotExist(os.Remove(temp)))", skip}),
	newFault("the checksum of a record is not compared", "a changed record is detected", by("hostile", 2000),
		Edit{"checkRecord", "binary.LittleEndian.Uint32(b[1:]) != checksum(b[recordHeader:])", "$ && !PLANTED"}),
	newFault("the checksum of a payload is not compared", "a changed payload is detected", by("hostile", 2000),
		Edit{"bolt/store.payload", "b, err := unseal(id[:], sealed, -1)", `$
if PLANTED && err != nil && len(sealed) > sealWidth {
	b, err = sealed[:len(sealed)-sealWidth], nil
}`}),
}
