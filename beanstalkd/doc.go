// Package beanstalkd is a job queue on a beanstalkd server, version 1.12 or later, which several
// processes and machines can share. It is a Go module of its own.
//
//	q, err := beanstalkd.Open(ctx, "beanstalkd://localhost:11300", nil)
//
// Use it if you run beanstalkd already, and want the kinds, handlers, policies, signatures, and
// workers of this library with it. Otherwise use package bolt for one process, or package postgres
// for several. Both keep the whole contract.
//
// # How jobs are stored
//
// Each kind of each queue has its own tube, such as pawl/default/mail.welcome, so a worker receives
// only the kinds that it handles. A job on the server contains its whole envelope: ID, signature,
// attempts, and history.
//
//   - A lease is a reservation. Its length is Options.Lease of the process that enqueued the job.
//     Extend is touch. When a lease expires, the process that has it releases the job, since version
//     1.12 of the server may miss the expiry while the connection lasts. The TTR of the job is 2 s
//     longer, so the server ends a lease only if its process does not. When a connection ends, its
//     jobs are ready again at once. So Reap has nothing to do and returns 0.
//   - Ack is delete. Release is release, and so is Snooze unless it resets the attempts.
//   - Nack puts a copy with one more attempt and the delay, and then deletes the job, since release
//     cannot change a job. A failure between the two leaves both, and the job runs twice.
//   - Abandon puts a copy with the reason and the history, buries the copy, and then deletes the job.
//     Use [Queue.Dead] to read the oldest dead job of a kind, and [Queue.RetryDead] to kick it.
//
// # What is missing
//
// The queue refuses unique keys, idempotency keys, deadlines, retention, retry shares, limit keys,
// groups, results, cursors, and jobs after others. The error names what was refused and matches
// [pawl.ErrUnsupported]. The first Enqueue of such a job returns it, and so does the start of a worker
// that needs the ability. Progress and logs are dropped. Use [pawl.Require] to check for abilities at
// the start of a program.
//
// Enqueue takes one job at a time, since the protocol has no transactions. For a larger batch it
// returns [pawl.ErrBatchTooLarge]. A payload has to fit into the server's -z, together with its
// envelope and room for the history; see [Queue.MaxPayload]. Enqueue refuses a queue and a kind whose
// names do not fit into the 200 bytes of a tube's name.
//
// The rest of the contract holds with these exceptions:
//
//   - A fetch takes jobs by priority, and then in the order in which they were put. A retry is put
//     when the attempt fails: behind the jobs that were put before, and in front of the jobs that
//     are put during its delay.
//   - Delays are whole seconds, rounded up, and so are leases.
//   - Each process applies its own weights. A fetch that waits takes the first job of any queue. If
//     several fetches wait, the server decides which one gets a job.
//   - If a process freezes, or loses its network without an end of the connection, its jobs may stay
//     leased until the server's TCP keepalive ends the connection. That takes 2 hours, unless you
//     lower net.ipv4.tcp_keepalive_time on the server.
//   - Crashes count since the job was put, and not in a row: a release does not reset the count. If a
//     lease expires while its process is alive, the process releases the job, and no crash counts. A
//     fetch may return a suspect before clean jobs, and together with other suspects.
//   - The server does not know IDs. A second job with the same ID is stored too, and no job can be
//     looked up, cancelled, listed, or run now by its ID. A queue cannot be paused.
//   - The history keeps the newest failures that fit into the job.
//   - If the connection of an Enqueue or a Settle breaks, the call returns [pawl.ErrUnknownOutcome],
//     without [pawl.ErrPoisoned]. Leases end with the connection that fetched them.
//   - Events cover only what this process does.
//
// # Durability
//
// Without -b the server keeps jobs only in memory. With -b it writes them to a log, and syncs the log
// at most every 50 ms unless it runs with -f0. So a job is durable when Enqueue returns only with
// both -b and -f0. The server reports whether it has a log, but not how it syncs the log. Set
// Options.Synced if the server runs with -f0. The queue then has the ability [pawl.Synced], and Open
// refuses a server without a log. If Options.Synced is not set, Open only logs a warning about a
// server without a log.
//
// The server has neither authentication nor encryption. Bind it to a loopback or private address.
package beanstalkd
