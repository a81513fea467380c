// Package servicebus is a job queue in an Azure Service Bus namespace, which several processes and machines can share. It
// is a Go module of its own.
//
//	q, err := servicebus.Open(ctx, os.Getenv("SERVICEBUS_CONNECTION_STRING"), nil)
//
// Use it if you run on Azure with Service Bus, and want the kinds, handlers, policies, signatures, and workers of this
// library with it. Otherwise use package bolt for one process, or package postgres for several. Both keep the whole
// contract.
//
// # What was tested
//
// The tests run against a stand-in, which speaks the part of AMQP 1.0 and of the management protocol that this package
// uses. They show how the package uses the protocol. They do not show how Azure behaves: nothing was tested against it.
// What this page says about the service follows Microsoft's documentation.
//
// # How jobs are stored
//
// Each kind of each queue has its own Service Bus queue, such as pawl/default/mail.welcome, so a worker receives only the
// kinds that it handles. [EntityName] returns the name. Create the Service Bus queues before you use them, without
// sessions and partitions, and with a large maximum delivery count:
//
//	az servicebus queue create --resource-group app --namespace-name app --name pawl/default/mail.welcome \
//		--lock-duration PT1M --max-delivery-count 2000
//
// A message contains the whole envelope: ID, signature, attempts, and history. The ID of the message is that of the job.
//
//   - A lease is a peek-lock. The lock is up to 2 s longer than the lease, so the process that has the job ends the lease
//     first. The service compares lock tokens, so a late holder changes nothing. Extend renews the lock. Reap has nothing
//     to do and returns 0. A lease outlives its connection.
//   - Ack completes the message. Release abandons it, and counts itself in a property of the message, so it is no crash.
//   - Nack stores a copy with one more attempt, scheduled if it has a delay, and then completes the message, since a
//     message cannot change. A snooze does so too, unless it has no delay and resets no attempts.
//   - Abandon dead-letters the message, with the reason, the error, and the history. Use [Queue.Dead] to read the oldest
//     dead job of a kind, and [Queue.RetryDead] to make it ready again.
//   - Crashes are the deliveries that ended without a settlement. The service itself dead-letters a message at the maximum
//     delivery count of its queue, which also counts releases. Dead reads it as a job with the reason poison.
//   - A message that is no job of this library is dead-lettered when a worker receives it. Dead and RetryDead pass it over.
//
// A failure between the copy and the completion leaves both, and the job runs twice. If the Service Bus queue has duplicate
// detection, the service drops a second copy within its window, since the ID of a copy follows from the message.
//
// # What is missing
//
// The queue refuses unique keys, idempotency keys, priorities, deadlines, retention, retry shares, limit keys, groups,
// results, cursors, and jobs after others. The error names what was refused and matches [pawl.ErrUnsupported]. The first
// Enqueue of such a job returns it, and so does the start of a worker that needs the ability. Progress and logs are
// dropped. A Fetch without kinds is refused too, since the protocol does not list queues. Use [pawl.Require] to check for
// abilities at the start of a program.
//
// Enqueue takes one job at a time. For a larger batch it returns [pawl.ErrBatchTooLarge]. A payload has to fit into
// Options.MaxMessage, together with its envelope and room for the history; see [Queue.MaxPayload].
//
// The rest of the contract holds with these exceptions:
//
//   - Jobs of one kind come roughly in the order in which they were stored. Retried jobs go behind the others. The
//     kinds of a request take turns.
//   - The service decides when a delayed job becomes ready, and does not promise to be exact.
//   - Each process applies its own weights. A fetch that waits takes the first job of any queue.
//   - A fetch that does not wait returns what the service delivers within 50 ms, or within a second if the service shows
//     jobs that another process may have.
//   - A job that crashed is fetched like others. If a job arrives at the moment when a fetch ends, the client gives it back,
//     and the service may count a crash.
//   - No job can be looked up, cancelled, listed, or run now by its ID, and a queue cannot be paused. Enqueue never returns
//     [pawl.ErrConflict]: with duplicate detection the service drops a second job with the same ID and does not say so.
//   - The history keeps the newest failures that fit into the job, and 32 KiB of them for a dead job.
//   - If the connection of an Enqueue or a Settle breaks, the call returns [pawl.ErrUnknownOutcome], without
//     [pawl.ErrPoisoned]. If the service ends only a link, for example after ten minutes without use, the client sends
//     the job again. Then only duplicate detection prevents a second copy.
//   - Events cover only what this process does. The event of a fetch may come before the event of the nack that made
//     the job ready.
//
// # Durability
//
// The service answers when the message is on its storage, as its documentation says, so the queue has the ability
// [pawl.Synced].
//
// # Secrets
//
// Errors and log lines of this package never contain the access key of a connection string.
package servicebus
