// Package beanstalkd is a transport for jobs: a queue on a beanstalkd server, version 1.12 or later,
// for several processes and machines. It is a module of its own.
//
//	q, err := beanstalkd.Open(ctx, "beanstalkd://localhost:11300", nil)
//
// Take it if you run beanstalkd already, and want the kinds, handlers, policies, signatures, and
// workers of this library over it. Otherwise take package bolt for one process, or package postgres
// for several: they keep the whole contract.
//
// # How jobs are stored
//
// Each kind of each queue is a tube, such as pawl/default/mail.welcome, so a worker receives only
// the kinds that it handles. A job carries its whole envelope: ID, signature, attempts, and history.
//
//   - A lease is a reservation. Its length is the TTR of the job, which is Options.Lease of the
//     process that enqueued the job. Extend is touch. A lease that expires, or whose connection
//     ends, makes the job ready again, so Reap has nothing to do and returns 0. The process that has
//     a lease also releases the job when it expires, since version 1.12 of the server may forget to as
//     long as the connection lasts.
//   - Ack is delete. Release is release, and so is Snooze unless it resets the attempts.
//   - Nack puts a copy with one attempt more and the delay, and then deletes the job, since release
//     cannot change a job. A failure between these two leaves both: the job runs twice.
//   - Abandon puts a copy with its reason and its history, buries it, and then deletes the job. Use
//     [Queue.Dead] to read the oldest dead job of a kind, and [Queue.RetryDead] to kick it.
//
// # What is lost
//
// The queue refuses by name, with [pawl.ErrUnsupported], what it lacks: unique keys, idempotency
// keys, deadlines, retention, and retry shares. The first Enqueue of such a job fails, and so does
// the start of a worker with a retry share. [pawl.Require] checks for abilities at the start of a program.
//
// Enqueue takes one job at a time, since the protocol has no transactions: more give
// [pawl.ErrBatchTooLarge]. A payload has at most what the server's -z allows, less the envelope and
// room for the history; see [Queue.MaxPayload]. A name of a queue and a kind that does not fit into
// the 200 bytes of a tube's name is refused.
//
// The rest of the contract holds with these exceptions:
//
//   - Jobs come by priority, and then in the order in which they were put. A retry is put when it
//     fails, so it goes behind what was put before, and in front of what was put during its delay.
//   - Delays are whole seconds, rounded up, and so are leases.
//   - Weights belong to the process. A fetch that waits takes the first job of any queue, and the
//     server decides which of several gets it.
//   - The jobs of a process that is frozen, or cut off without an end of its connection, may stay
//     leased until the server's keepalive ends the connection: after 2 hours, unless you lower
//     net.ipv4.tcp_keepalive_time on the server.
//   - Crashes count since the job was put, and not in a row: a release does not reset them. A lease
//     that expires in a living process is released and counts none. A job that crashed may be
//     fetched ahead of others, and beside others that crashed.
//   - The server does not know IDs. A job whose ID is taken is stored twice, and no job can be
//     looked up, cancelled, listed, or run now by its ID. A queue cannot be paused.
//   - The history keeps the newest failures that fit into the job.
//   - An Enqueue or a Settle whose connection breaks gives [pawl.ErrUnknownOutcome] alone. Leases
//     end with the connection that they came by.
//   - Events are those of the own process.
//
// # Durability
//
// Without -b the server keeps jobs in memory alone. With -b it writes them to a log, which it syncs
// at most each 50 ms unless it has -f0. So a job is durable when Enqueue returns only with -b and
// -f0. The server tells whether it has a log, and not how it syncs. Set Options.Synced to declare
// that it has -f0: the queue then has the ability [pawl.Synced], and Open refuses a server without a
// log. Open logs a warning about a server without a log otherwise.
//
// The server has neither authentication nor encryption. Bind it to a loopback or private address.
package beanstalkd
