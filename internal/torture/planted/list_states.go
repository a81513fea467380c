package planted

// states are faults in the moves of a job between its states, and in the counts.
var states = []Fault{
	{
		Name: "no token check", Breaks: "only who has the lease settles the job",
		Edits: []Edit{{"bolt/settle.go", "	case !ok || row.token != h.token:\n", "	case !ok || row.token != h.token && !PLANTED:\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "loses an attempt", Breaks: "every failed run counts",
		Edits: []Edit{{"bolt/moves.go", "	j.Attempts = pawl.NextAttempt(j.Attempts)\n	t.note(j, j.Attempts, f)\n", "	if !PLANTED || j.ID[15]%8 != 0 {\n		j.Attempts = pawl.NextAttempt(j.Attempts)\n	}\n	t.note(j, j.Attempts, f)\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "an ack leaves the lease", Breaks: "a job is leased if and only if it has a lease",
		Edits: []Edit{{"bolt/settle.go", "		t.remove(op.id, op.row.flags)\n	} else {\n", "		t.remove(op.id, op.row.flags)\n		if PLANTED && op.id[15]%16 == 0 {\n			t.put(t.leased, op.id[:], seal(op.id[:], op.row.append(nil)))\n		}\n	} else {\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a dead letter that is retried stays counted", Breaks: "the counts are those of a scan",
		Edits: []Edit{{"bolt/moves.go", "	*t.counts(p.line).Of(p.state)--\n	if p.state == pawl.Ready {\n", "	if !PLANTED || p.state != pawl.Dead {\n		*t.counts(p.line).Of(p.state)--\n	}\n	if p.state == pawl.Ready {\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a release counts as an attempt", Breaks: "a run that was interrupted does not count",
		Edits: []Edit{{"bolt/settle.go", "	return move(\"\", nil, func(t *txn, op *settle, j stored) {\n		t.rewrite(j)\n		t.tell(op.event(pawl.EventReleased, j.Envelope))\n", "	return move(\"\", nil, func(t *txn, op *settle, j stored) {\n		if PLANTED {\n			j.Attempts++\n		}\n		t.rewrite(j)\n		t.tell(op.event(pawl.EventReleased, j.Envelope))\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a payload stays behind", Breaks: "nothing is left of a job that is done",
		Edits: []Edit{{"bolt/moves.go", "	if f&hasPayload != 0 {\n		t.delete(t.payloads, id[:])\n", "	if f&hasPayload != 0 && !PLANTED {\n		t.delete(t.payloads, id[:])\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a retry loses the payload", Breaks: "a job runs with the payload that it was given",
		Edits: []Edit{{"bolt/settle.go", "		j.BackoffSince = t.now\n		t.rewrite(j)\n", "		j.BackoffSince = t.now\n		if PLANTED && j.apart > 0 {\n			t.delete(t.payloads, j.ID[:])\n			j.apart = 0\n		}\n		t.rewrite(j)\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a history stays behind", Breaks: "nothing is left of a job that is done",
		Edits: []Edit{{"bolt/moves.go", "			t.delete(t.history, k)\n		}\n	}\n}\n", "			if PLANTED {\n				break\n			}\n			t.delete(t.history, k)\n		}\n	}\n}\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "the history is cut too early", Breaks: "the first and the last failures are kept",
		Edits: []Edit{{"bolt/moves.go", "	n := j.Failures\n	j.Failures++\n", "	n := j.Failures\n	if PLANTED && n == 2 {\n		t.delete(t.history, historyKey(nil, j.ID, 0))\n	}\n	j.Failures++\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}, {Family: "simulate", Units: 100}},
	},
	{
		Name: "a retry forgets the attempts that it keeps", Breaks: "a dead letter that is retried keeps its attempts when it is to",
		Edits: []Edit{{"bolt/moves.go", "	if !keepAttempts {\n", "	if !keepAttempts || PLANTED {\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a cancelled run is retried", Breaks: "a job that was cancelled ends",
		Edits: []Edit{{"bolt/settle.go", "		if j.Cancelled {\n", "		if j.Cancelled && !PLANTED {\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}, {Family: "soak", Units: 20_000}},
	},
}
