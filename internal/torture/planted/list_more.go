package planted

// answers are faults in what callers are told, and in what is left to them.
var answers = []Fault{
	{
		Name: "an unknown outcome is answered as done", Breaks: "a failed sync is no success",
		Edits: []Edit{{"bolt/scheduler.poison", "c.answer(unknown)", "if PLANTED { unknown = nil }; $"}},
		By:    []Hunt{{Family: "failed-sync-images", Units: 3000}},
	},
	{
		Name: "events are told before the commit", Breaks: "what is told is durable",
		Edits: []Edit{{"bolt/scheduler.write", "err = s.commitGuarded(tx)", `if PLANTED {
	s.observer.tell(t.events)
	t.events = nil
}
$`}},
		By: []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an ack of a lost lease is no error", Breaks: "who has lost a lease is told so",
		Edits: []Edit{{"bolt/acks.apply", "op.errs[i] = err", skip}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "a call does not wake the scheduler", Breaks: "a call is answered",
		Edits: []Edit{{"bolt/intake.offer", "in.ring()", "if !PLANTED || n > 0 { $ }"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a handler does not hear that its job was cancelled", Breaks: "a run whose job is cancelled is told to end",
		Edits: []Edit{{"bolt/leaseTable.takeNote", "g.cancelled.Fire()", skip}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an Update that failed is committed", Breaks: "a function that fails stores nothing",
		Edits: []Edit{{"bolt/scheduler.update", "err := s.await(u)", "$; if PLANTED { err = nil }"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a heart does not beat", Breaks: "a job that is held is not given to another",
		Edits: []Edit{{"worker/session.beat", "s.extend(ctx)", skip}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "the pause of a queue is ignored", Breaks: "a paused queue gives no jobs",
		Edits: []Edit{{"bolt/selection.open", "!row.paused", "$ || PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a fetch brings one job too many", Breaks: "a fetch brings no more than it asks for",
		Edits: []Edit{{"bolt/selection.run", "len(s.jobs) < s.request.Max", "($ || PLANTED && len(s.jobs) == s.request.Max)"}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "a clock that comes right is not noticed", Breaks: "a job is promoted within a minute after the clock comes right",
		Edits: []Edit{{"bolt/scheduler.untilNext", "wait = max(wait, least)", "$; if PLANTED { wait = max(wait, s.due.Sub(s.now())) }"}},
		By:    []Hunt{{Family: "clock", Units: 200}},
	},
}

// leftovers are faults that leave rows or files of what is over.
var leftovers = []Fault{
	{
		Name: "a deadline stays behind", Breaks: "a deadline belongs to a job",
		Edits: []Edit{{"bolt/txn.forgetDeadline", "t.delete(t.expiry, deadlineKey(nil, j.Envelope))", skip}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "nobody looks at a deadline", Breaks: "a job dies at its deadline",
		Edits: []Edit{{"bolt/txn.overdue", "t.put(t.expiry, key, seal(key, nil))", skip}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a unique key is not taken", Breaks: "no two jobs of one unique key",
		Edits: []Edit{{"bolt/txn.takeUnique", `j.UniqueKey != ""`, "$ && !PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a record is not retained", Breaks: "a success is kept as long as it is to",
		Edits: []Edit{{"bolt/txn.succeed", "j.Retain <= 0", "$ || PLANTED"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a compaction is not synced", Breaks: "a compaction that was made survives a power cut",
		Edits: []Edit{{"bolt/reader.compactInto", "err = dst.Sync()", skip}},
		By:    []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
	},
	{
		Name: "a temporary file stays", Breaks: "nothing is left but the queue's file",
		Edits: []Edit{{"internal/atomicfile/Place", "err = errors.Join(err, ignoreNotExist(os.Remove(temp)))", skip}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "the checksum of a record is not compared", Breaks: "a record whose bytes were changed is not believed",
		Edits: []Edit{{"CheckRecord", "binary.LittleEndian.Uint32(b[1:]) != checksum(b[recordHeader:])", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
	{
		Name: "a payload is not looked at", Breaks: "a payload whose bytes were changed is not believed",
		Edits: []Edit{{"bolt/store.payload", "b, err := unseal(id[:], sealed, -1)", `$
if PLANTED && err != nil && len(sealed) > sealWidth {
	b, err = sealed[:len(sealed)-sealWidth], nil
}`}},
		By: []Hunt{{Family: "hostile", Units: 2000}},
	},
}
