package planted

// workers are faults in a worker.
var workers = []Fault{
	newFault("a worker forgets to ack", "a successful job is settled", by("soak", 20_000),
		Edit{"worker/session.settleFinished", "began := time.Now()", "if n := len(settlements); PLANTED && n > 2 { settlements = settlements[:n-1] }; $"}),
	newFault("a worker acks a job that panicked", "a panic is a failure", by("soak", 20_000),
		Edit{"worker/attempt.run", "a.err = p", skip}),
	newFault("a job gets one retry too many", "a job runs at most once more than its retries", by("soak", 20_000),
		Edit{"worker/decide", "e.LastAttempt()", "$ && !(PLANTED && e.Attempts == e.MaxRetries)"}),
	newFault("an interrupted run counts", "a run that a stop interrupts is no failure", by("soak", 50_000),
		Edit{"worker/decide", "interrupted", "$ && !PLANTED"}),
	newFault("prefetched jobs are not released", "a stop leaves no lease", by("soak", 50_000),
		Edit{"worker/session.release", "s.settle(batch...)", skip}),
}
