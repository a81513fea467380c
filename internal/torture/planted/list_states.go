package planted

// states are faults in the moves of a job between its states, and in the counts.
var states = []Fault{
	newFault("no token check", "only the holder of the lease settles the job", by("simulate", 500),
		Edit{"bolt/txn.held", "row.token != h.token", "$ && !PLANTED"}),
	newFault("loses an attempt", "every failed run counts", by("kill", 100),
		Edit{"bolt/txn.failure", "j.Attempts = driver.NextAttempt(j.Attempts)", "if !PLANTED || j.ID[15]%8 != 0 { $ }"}),
	newFault("an ack leaves the lease", "a job is leased if and only if it has a lease", by("kill", 100),
		Edit{"bolt/settle.ack", "t.remove(op.id, op.row.flags)", `$
if PLANTED && op.id[15]%16 == 0 {
	t.put(t.leased, op.id[:], seal(op.id[:], op.row.append(nil)))
}`}),
	newFault("a retried dead job stays counted", "the counts are those of a scan", by("kill", 100),
		Edit{"bolt/txn.unplace", "*driver.CountOf(t.counts(p.line), p.state)--", "if !PLANTED || p.state != pawl.Dead { $ }"}),
	newFault("a release counts as an attempt", "a run that was interrupted does not count", by("kill", 100),
		Edit{"bolt/settle.release", "t.rewrite(j)", "if PLANTED { j.Attempts++ }; $"}),
	newFault("a payload stays behind", "a finished job leaves no rows", by("kill", 100),
		Edit{"bolt/txn.remove", "f&hasPayload != 0", "$ && !PLANTED"}),
	newFault("a retry loses the payload", "a job keeps its payload", by("kill", 100),
		Edit{"bolt/settle.nack", "t.rewrite(j)", `$
if PLANTED && j.apart > 0 {
	t.delete(t.payloads, j.ID[:])
	j.apart = 0
}`}),
	newFault("a history stays behind", "a finished job leaves no rows", by("kill", 100),
		Edit{"bolt/txn.remove", "t.delete(t.history, k)", "if PLANTED { break }; $"}),
	newFault("the history is cut too early", "the first and the last failures are kept", append(by("soak", 20_000), by("simulate", 100)...),
		Edit{"bolt/txn.note", "j.Failures++", `if PLANTED && n == 2 {
	t.delete(t.history, historyKey(nil, j.ID, 0))
}
$`}),
	newFault("a retry forgets the attempts that it keeps", "a retry can keep the attempts of a dead job", by("kill", 100),
		Edit{"bolt/txn.revive", "!keepAttempts", "$ || PLANTED"}),
	newFault("a cancelled run is retried", "a job that was cancelled ends", append(by("simulate", 500), by("soak", 20_000)...),
		Edit{"bolt/settle.move", "j.Cancelled", "$ && !PLANTED"}),
}
