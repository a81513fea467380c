package planted

// keys are faults in unique and idempotency keys, and in the order of jobs.
var keys = []Fault{
	{
		Name: "a unique key is not freed", Breaks: "a unique key leads to a job that is there",
		Edits: []Edit{{"bolt/unique.go", "pawl.ID(id) == j.ID {\n		t.delete(t.unique, key)\n", "pawl.ID(id) == j.ID && !PLANTED {\n		t.delete(t.unique, key)\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a unique key does not block", Breaks: "no two jobs of one unique key",
		Edits: []Edit{{"bolt/unique.go", "	return j, p, err == nil && e.BlockedBy(p.state), err\n", "	return j, p, err == nil && e.BlockedBy(p.state) && !PLANTED, err\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}, {Family: "soak", Units: 20_000}},
	},
	{
		Name: "an effect is not noted as done", Breaks: "an effect takes place once",
		Edits: []Edit{{"bolt/effects.go", "	t.doneUntil(key, row, t.now.Add(ttl))\n", "	if !PLANTED {\n		t.doneUntil(key, row, t.now.Add(ttl))\n	}\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}, {Family: "soak", Units: 20_000}},
	},
	{
		Name: "two jobs of one effect run at a time", Breaks: "jobs of one idempotency key do not run beside one another",
		Edits: []Edit{{"bolt/fetch.go", "	case effect.holder != pawl.ID{}:\n", "	case effect.holder != pawl.ID{} && !PLANTED:\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "jobs aside are not brought back", Breaks: "a job that waits for an effect comes when that is free",
		Edits: []Edit{{"bolt/effects.go", "	for from := prefix; from != nil; {\n", "	for from := prefix; from != nil && !PLANTED; {\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "priority does not count", Breaks: "jobs come in the order of their priority",
		Edits: []Edit{{"bolt/keys.go", "	b = append(b, byte(127-int(e.Priority)))\n", "	if PLANTED {\n		e = &pawl.Envelope{NotBefore: e.NotBefore, Seq: e.Seq}\n	}\n	b = append(b, byte(127-int(e.Priority)))\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a sequence is used again after a restart", Breaks: "the sequence of jobs rises as long as the file lives",
		Edits: []Edit{{"bolt/queue.go", "		q.seq.Store(s.jobs.Sequence())\n", "		q.seq.Store(s.jobs.Sequence())\n		if PLANTED {\n			q.seq.Store(s.jobs.Sequence() / 2)\n		}\n"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "a delayed job leads to another lane", Breaks: "a delayed job comes into its place among the ready ones",
		Edits: []Edit{{"bolt/moves.go", "	row := delayedRow{indexRow{j.ID, j.flags()}, ready}\n", "	if PLANTED && j.Attempts > 0 {\n		ready[4] ^= 1\n	}\n	row := delayedRow{indexRow{j.ID, j.flags()}, ready}\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "checksums of rows are not compared", Breaks: "a row whose bytes were changed is not believed",
		Edits: []Edit{{"bolt/keys.go", "	if binary.LittleEndian.Uint32(sealed[n:]) != sum(key, sealed[:n]) {\n", "	if binary.LittleEndian.Uint32(sealed[n:]) != sum(key, sealed[:n]) && !PLANTED {\n"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
}
