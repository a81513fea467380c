package planted

// workers are faults in what a worker makes of a run.
var workers = []Fault{
	{
		Name: "a worker forgets to ack", Breaks: "a job that succeeded is settled",
		Edits: []Edit{{"worker/settle.go", "		began := time.Now()\n		err := s.w.queue.Ack(", "		if n := len(leases); PLANTED && n > 2 {\n			leases = leases[:n-1]\n		}\n		began := time.Now()\n		err := s.w.queue.Ack("}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a worker acks a job that panicked", Breaks: "a handler that panics has failed",
		Edits: []Edit{{"worker/attempt.go", "		a.err = p\n", "		if !PLANTED {\n			a.err = p\n		}\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a job runs once more than it may", Breaks: "a job runs at most once more than it has retries",
		Edits: []Edit{{"worker/decide.go", "	if e.LastAttempt() {\n", "	if e.LastAttempt() && !(PLANTED && e.Attempts == e.MaxRetries) {\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a run that is told to stop counts", Breaks: "a run that a stop interrupts is no failure",
		Edits: []Edit{{"worker/decide.go", "	if interrupted {\n", "	if interrupted && !PLANTED {\n"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "what was fetched ahead is not given back", Breaks: "a stop leaves no lease",
		Edits: []Edit{{"worker/slots.go", "		if a.claim() {\n			go s.conclude(a, decision{verb: release})\n", "		if a.claim() {\n			if PLANTED {\n				s.forget(a)\n				continue\n			}\n			go s.conclude(a, decision{verb: release})\n"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
}
