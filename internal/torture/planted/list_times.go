package planted

// times are faults in delays, deadlines and leases.
var times = []Fault{
	newFault("promotes early", "a job never runs before its time", by("simulate", 500),
		Edit{"bolt/txn.promoteDue", "return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, t.now), portion)", `last := t.now
if PLANTED {
	last = last.Add(2e9)
}
return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, last), portion)`}),
	newFault("a failed job does not wait", "a failed job waits for its backoff", by("kill", 100),
		Edit{"bolt/settle.nack", "t.place(j)", `if PLANTED {
	t.placeReady(j)
	return
}
$`}),
	newFault("a deadline does not count", "a job does not run after its deadline", by("simulate", 500),
		Edit{"bolt/overdue", "!e.Deadline.IsZero() && !e.Deadline.After(now)", "$ && !PLANTED"}),
	newFault("completed records stay", "a completed job is removed after its retention", by("soak", 20_000),
		Edit{"bolt/txn.expireDue", "removed := t.eachDue(t.completed, portion, t.removeCompleted)", `removed := 0
if !PLANTED {
	removed = t.eachDue(t.completed, portion, t.removeCompleted)
}`}),
	newFault("an extended lease expires", "no other worker gets a leased job", by("simulate", 500),
		Edit{"bolt/leaseTable.takeNote", "lt.unlink(g)", "if PLANTED { continue }; $"}),
	newFault("an extension hides a lost lease", "a holder learns that its lease is lost", by("simulate", 500),
		Edit{"bolt/extend.apply", "op.lost = append(op.lost, i)", skip}),
	newFault("a pause ends with the process", "a pause outlasts a restart", by("soak", 50_000),
		Edit{"bolt/queueRow.append", "r.paused", "$ && !PLANTED"}),
	newFault("leases do not expire", "a job runs again after its lease expires", by("simulate", 500),
		Edit{"bolt/leaseTable.reap", "g != &lt.head && reaped < portion && !g.expires.After(lt.noted)", "!PLANTED && $"}),
}
