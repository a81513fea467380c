// Package jetstream is a job queue in a stream of a NATS server, version 2.12 or later, which several processes and
// machines can share. It is a Go module of its own.
//
//	q, err := jetstream.Open(ctx, "nats://localhost:4222", nil)
//
// Use it if you run NATS already, and want the kinds, handlers, policies, signatures, and workers of this library with
// it. Otherwise use package bolt for one process, or package postgres for several. Both keep the whole contract.
//
// # How jobs are stored
//
// Open creates the stream PAWL, with file storage and work-queue retention, and the stream PAWL_DEAD. Each kind of each
// queue has its own subject, such as pawl.job.default.mail=2Ewelcome, and a durable consumer, so a worker receives only
// the kinds that it handles. A message contains the whole envelope: ID, signature, attempts, and history.
//
//   - A lease is a delivery. The ack wait of the consumer is 2 s longer than the lease. So the process that has the
//     job ends the lease first, and refuses later settlements with [pawl.ErrLeaseLost]. Extend reports progress. Reap
//     has nothing to do and returns 0.
//   - Ack waits until the server has confirmed it.
//   - Nack, Release, and Snooze store a copy of the job, and then ack the message, since a message cannot change. A copy
//     with a delay is a scheduled message.
//   - Abandon stores a copy with the reason and the history in the stream of dead jobs, and then acks the message. Use
//     [Queue.Dead] to read the oldest dead job of a kind, and [Queue.RetryDead] to make it ready again.
//   - A message that is no job of this library moves to a subject such as pawl.dead.default.mail.unreadable.7 when a
//     worker receives it. Dead and RetryDead pass it over. [Queue.Stats] counts it as dead.
//
// A failure between the copy and the ack leaves both, and the job runs twice. The ID of a copy follows from the
// message. So if the message is delivered again and settled again within the stream's duplicate window, which is 2
// minutes by default, the server does not store a second copy.
//
// # What is missing
//
// The queue refuses unique keys, idempotency keys, priorities, deadlines, retention, retry shares, limit keys, groups,
// results, cursors, and jobs after others. The error names what was refused and matches [pawl.ErrUnsupported]. The first
// Enqueue of such a job returns it, and so does the start of a worker that needs the ability. Progress and logs are
// dropped. Use [pawl.Require] to check for abilities at the start of a program.
//
// Enqueue takes one job at a time. For a larger batch it returns [pawl.ErrBatchTooLarge]. A payload has to fit into the
// server's max_payload, together with its envelope and room for the history; see [Queue.MaxPayload].
//
// The rest of the contract holds with these exceptions:
//
//   - The server does not compare tokens: it obeys an acknowledgement of an earlier delivery. The queue refuses a late
//     settlement in the process that had the lease, by that process's clock. If a process freezes for more than 2 s
//     between this check and its request, it can settle a job that another process runs.
//   - Jobs of one kind come in the order in which they were stored. Retried and released jobs go behind the
//     others. The kinds of a request take turns.
//   - A fetch that does not wait may miss a job that was stored a moment before.
//   - A delayed job becomes ready up to 250 ms late, and at the latest in the year 2262. The clock of the server
//     decides.
//   - Each process applies its own weights. A fetch that waits takes the first job of any queue.
//   - A job that crashed is fetched like others. If a fetch ends at the moment when the server delivers a job to it, the
//     job comes again when its lease expires, and a crash counts.
//   - No job can be looked up, cancelled, listed, or run now by its ID, and a queue cannot be paused. Enqueue returns
//     [pawl.ErrConflict] only for an ID that the stream received within its duplicate window.
//   - The history keeps the newest failures that fit into the job.
//   - If the connection of an Enqueue or a Settle breaks, the call returns [pawl.ErrUnknownOutcome], without
//     [pawl.ErrPoisoned]. To find out, enqueue the job again with the same ID within the duplicate window:
//     [pawl.ErrConflict] means that it is stored.
//   - Events cover only what this process does. The event of a fetch may come before the event of the nack that made
//     the job ready.
//
// # Durability
//
// The server answers before it syncs its files: by default it syncs them every 2 minutes. A kill of the server loses
// nothing, and a power cut loses what was not synced. With "sync_interval: always" it syncs before it answers. The
// server does not report the setting. Set Options.Synced if every server has it. The queue then has the ability
// [pawl.Synced]. With Options.Replicas a cluster keeps each job on several servers, which protects against the loss of
// one server, and not against a power cut of all.
package jetstream
