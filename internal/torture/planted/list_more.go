package planted

// answers are faults in the answers to callers.
var answers = []Fault{
	{
		Name: "an unknown outcome is a success", Breaks: "a failed sync is no success",
		Edits: []Edit{{"bolt/scheduler.poison", "c.answer(unknown)", "if PLANTED { unknown = nil }; $"}},
		By:    []Hunt{{Family: "failed-sync-images", Units: 3000}},
	},
	{
		Name: "events come before the commit", Breaks: "an event is durable",
		Edits: []Edit{{"bolt/scheduler.write", "err = s.commitGuarded(tx)", `if PLANTED {
	s.observer.tell(t.events)
	t.events = nil
}
$`}},
		By: []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an ack of a lost lease is no error", Breaks: "a holder learns that its lease is lost",
		Edits: []Edit{{"bolt/acks.apply", "op.errs[i] = err", skip}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "a call does not wake the scheduler", Breaks: "every call gets an answer",
		Edits: []Edit{{"bolt/intake.offer", "in.ring()", "if !PLANTED || n > 0 { $ }"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a handler does not learn that its job was cancelled", Breaks: "a cancel reaches the running handler",
		Edits: []Edit{{"bolt/leaseTable.takeNote", "g.cancelled.Fire()", skip}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a failed Update is committed", Breaks: "a function of Update that fails stores nothing",
		Edits: []Edit{{"bolt/scheduler.update", "err := s.await(u)", "$; if PLANTED { err = nil }"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a heartbeat extends nothing", Breaks: "no other worker gets a leased job",
		Edits: []Edit{{"worker/session.beat", "s.extend(ctx)", skip}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "the pause of a queue is ignored", Breaks: "a paused queue gives no jobs",
		Edits: []Edit{{"bolt/selection.open", "!row.paused", "$ || PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a fetch brings one job too many", Breaks: "a fetch returns no more jobs than requested",
		Edits: []Edit{{"bolt/selection.run", "len(s.jobs) < s.request.Max", "($ || PLANTED && len(s.jobs) == s.request.Max)"}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "a corrected clock is not noticed", Breaks: "a job is promoted within a minute after a correction of the clock",
		Edits: []Edit{{"bolt/scheduler.untilNext", "wait = max(wait, least)", "$; if PLANTED { wait = max(wait, s.due.Sub(s.now())) }"}},
		By:    []Hunt{{Family: "clock", Units: 200}},
	},
}

// leftovers are faults that leave rows or files behind.
var leftovers = []Fault{
	{
		Name: "a deadline stays behind", Breaks: "a finished job leaves no deadline",
		Edits: []Edit{{"bolt/txn.forgetDeadline", "t.delete(t.expiry, deadlineKey(nil, j.Envelope))", skip}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a deadline is not watched", Breaks: "a job dies at its deadline",
		Edits: []Edit{{"bolt/txn.overdue", "t.put(t.expiry, key, seal(key, nil))", skip}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a unique key is not taken", Breaks: "no two jobs of one unique key",
		Edits: []Edit{{"bolt/txn.takeUnique", `j.UniqueKey != ""`, "$ && !PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a record is not retained", Breaks: "a completed job is kept for its retention",
		Edits: []Edit{{"bolt/txn.succeed", "j.Retain <= 0", "$ || PLANTED"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a compaction is not synced", Breaks: "a finished compaction survives a power cut",
		Edits: []Edit{{"bolt/reader.compactInto", "err = dst.Sync()", skip}},
		By:    []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
	},
	{
		Name: "a temporary file stays", Breaks: "no temporary file remains",
		Edits: []Edit{{"internal/atomicfile/Place", "err = errors.Join(err, ignoreNotExist(os.Remove(temp)))", skip}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "the checksum of a record is not compared", Breaks: "a changed record is detected",
		Edits: []Edit{{"CheckRecord", "binary.LittleEndian.Uint32(b[1:]) != checksum(b[recordHeader:])", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
	{
		Name: "the checksum of a payload is not compared", Breaks: "a changed payload is detected",
		Edits: []Edit{{"bolt/store.payload", "b, err := unseal(id[:], sealed, -1)", `$
if PLANTED && err != nil && len(sealed) > sealWidth {
	b, err = sealed[:len(sealed)-sealWidth], nil
}`}},
		By: []Hunt{{Family: "hostile", Units: 2000}},
	},
}
