package planted

// times are faults in delays, deadlines and leases.
var times = []Fault{
	{
		Name: "promotes early", Breaks: "a job never runs before its time",
		Edits: []Edit{{"bolt/txn.promoteDue", "return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, t.now), portion)", `last := t.now
if PLANTED {
	last = last.Add(2e9)
}
return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, last), portion)`}},
		By: []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a failed job does not wait", Breaks: "a failed job waits for its backoff",
		Edits: []Edit{{"bolt/nack", "t.place(j)", `if PLANTED {
	t.placeReady(j)
	return
}
$`}},
		By: []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a deadline does not count", Breaks: "a job does not run after its deadline",
		Edits: []Edit{{"bolt/overdue", "!e.Deadline.IsZero() && !e.Deadline.After(now)", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "completed records stay", Breaks: "a completed job is removed after its retention",
		Edits: []Edit{{"bolt/txn.expireDue", "removed := t.eachDue(t.completed, portion, t.removeCompleted)", `removed := 0
if !PLANTED {
	removed = t.eachDue(t.completed, portion, t.removeCompleted)
}`}},
		By: []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an extended lease expires", Breaks: "no other worker gets a leased job",
		Edits: []Edit{{"bolt/leaseTable.takeNote", "lt.unlink(g)", "if PLANTED { continue }; $"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "an extension hides a lost lease", Breaks: "a holder learns that its lease is lost",
		Edits: []Edit{{"bolt/extend.apply", "op.lost = append(op.lost, i)", skip}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a pause ends with the process", Breaks: "a pause outlasts a restart",
		Edits: []Edit{{"bolt/queueRow.append", "r.paused", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "leases do not expire", Breaks: "a job runs again after its lease expires",
		Edits: []Edit{{"bolt/leaseTable.reap", "g != &lt.head && reaped < portion && !g.expires.After(lt.heard)", "!PLANTED && $"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
}
