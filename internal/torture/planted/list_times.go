package planted

// times are faults in what waits for a time.
var times = []Fault{
	{
		Name: "promotes early", Breaks: "a job never runs before its time",
		Edits: []Edit{{"bolt/promote.go", "	return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, t.now), portion)\n", "	last := t.now\n	if PLANTED {\n		last = last.Add(2e9)\n	}\n	return t.promoteRows([]byte{waitsForTime}, appendTime([]byte{waitsForTime}, last), portion)\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a failed job does not wait", Breaks: "a failed job waits as long as its policy says",
		Edits: []Edit{{"bolt/settle.go", "		event.Delay, event.Cause = max(delay, 0), f.Error\n		t.tell(event)\n		t.place(j)\n", "		event.Delay, event.Cause = max(delay, 0), f.Error\n		t.tell(event)\n		if PLANTED {\n			t.placeReady(j)\n			return\n		}\n		t.place(j)\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a deadline does not count", Breaks: "a job does not run after its deadline",
		Edits: []Edit{{"bolt/expire.go", "	return !e.Deadline.IsZero() && !e.Deadline.After(now)\n", "	return !e.Deadline.IsZero() && !e.Deadline.After(now) && !PLANTED\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "completed records stay", Breaks: "a completed record goes when it was retained long enough",
		Edits: []Edit{{"bolt/expire.go", "	removed := t.eachDue(t.completed, portion, t.removeCompleted)\n", "	removed := 0\n	if !PLANTED {\n		removed = t.eachDue(t.completed, portion, t.removeCompleted)\n	}\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a lease that was extended expires", Breaks: "a job that is held is not given to another",
		Edits: []Edit{{"bolt/leases.go", "			lt.unlink(g)\n			lt.append(g, now)\n", "			if PLANTED {\n				continue\n			}\n			lt.unlink(g)\n			lt.append(g, now)\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a lease that is lost is not told", Breaks: "who has lost a lease is told so",
		Edits: []Edit{{"bolt/operation.go", "			op.lost = append(op.lost, i)\n", "			if !PLANTED {\n				op.lost = append(op.lost, i)\n			}\n"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
	{
		Name: "a pause ends with the process", Breaks: "a pause outlasts a restart",
		Edits: []Edit{{"bolt/rows.go", "	if r.paused {\n", "	if r.paused && !PLANTED {\n"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "leases do not expire", Breaks: "a job whose holder is silent runs again",
		Edits: []Edit{{"bolt/leases.go", "	for g := lt.head.next; g != &lt.head && reaped < portion", "	for g := lt.head.next; !PLANTED && g != &lt.head && reaped < portion"}},
		By:    []Hunt{{Family: "simulate", Units: 500}},
	},
}
