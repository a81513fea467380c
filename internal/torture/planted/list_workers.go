package planted

// workers are faults in a worker.
var workers = []Fault{
	{
		Name: "a worker forgets to ack", Breaks: "a successful job is settled",
		Edits: []Edit{{"worker/session.ackFinished", "began := time.Now()", "if n := len(leases); PLANTED && n > 2 { leases = leases[:n-1] }; $"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a worker acks a job that panicked", Breaks: "a panic is a failure",
		Edits: []Edit{{"worker/attempt.run", "a.err = p", skip}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a job gets one retry too many", Breaks: "a job runs at most once more than its retries",
		Edits: []Edit{{"worker/decide", "e.LastAttempt()", "$ && !(PLANTED && e.Attempts == e.MaxRetries)"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an interrupted run counts", Breaks: "a run that a stop interrupts is no failure",
		Edits: []Edit{{"worker/decide", "interrupted", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "prefetched jobs are not released", Breaks: "a stop leaves no lease",
		Edits: []Edit{{"worker/session.releaseWaiting", "go s.conclude(a, decision{verb: release})", `if PLANTED {
	s.forget(a)
	continue
}
$`}},
		By: []Hunt{{Family: "soak", Units: 50_000}},
	},
}
