package planted

// states are faults in the moves of a job between its states, and in the counts.
var states = []Fault{
	{
		Name: "no token check", Breaks: "only the holder of the lease settles the job",
		Edits: []Edit{{"bolt/txn.held", "row.token != h.token", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "loses an attempt", Breaks: "every failed run counts",
		Edits: []Edit{{"bolt/txn.failure", "j.Attempts = pawl.NextAttempt(j.Attempts)", "if !PLANTED || j.ID[15]%8 != 0 { $ }"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "an ack leaves the lease", Breaks: "a job is leased if and only if it has a lease",
		Edits: []Edit{{"bolt/ack", "t.remove(op.id, op.row.flags)", `$
if PLANTED && op.id[15]%16 == 0 {
	t.put(t.leased, op.id[:], seal(op.id[:], op.row.append(nil)))
}`}},
		By: []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a retried dead job stays counted", Breaks: "the counts are those of a scan",
		Edits: []Edit{{"bolt/txn.unplace", "*t.counts(p.line).Of(p.state)--", "if !PLANTED || p.state != pawl.Dead { $ }"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a release counts as an attempt", Breaks: "a run that was interrupted does not count",
		Edits: []Edit{{"bolt/release", "t.rewrite(j)", "if PLANTED { j.Attempts++ }; $"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a payload stays behind", Breaks: "a finished job leaves no rows",
		Edits: []Edit{{"bolt/txn.remove", "f&hasPayload != 0", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a retry loses the payload", Breaks: "a job keeps its payload",
		Edits: []Edit{{"bolt/nack", "t.rewrite(j)", `$
if PLANTED && j.apart > 0 {
	t.delete(t.payloads, j.ID[:])
	j.apart = 0
}`}},
		By: []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a history stays behind", Breaks: "a finished job leaves no rows",
		Edits: []Edit{{"bolt/txn.remove", "t.delete(t.history, k)", "if PLANTED { break }; $"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "the history is cut too early", Breaks: "the first and the last failures are kept",
		Edits: []Edit{{"bolt/txn.note", "j.Failures++", `if PLANTED && n == 2 {
	t.delete(t.history, historyKey(nil, j.ID, 0))
}
$`}},
		By: []Hunt{{Family: "soak", Units: 20_000}, {Family: "simulate", Units: 100}},
	},
	{
		Name: "a retry forgets the attempts that it keeps", Breaks: "a retry can keep the attempts of a dead job",
		Edits: []Edit{{"bolt/txn.revive", "!keepAttempts", "$ || PLANTED"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a cancelled run is retried", Breaks: "a job that was cancelled ends",
		Edits: []Edit{{"bolt/move", "j.Cancelled", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}, {Family: "soak", Units: 20_000}},
	},
}
