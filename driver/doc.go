// Package driver is for authors of queues, and of packages that store rows beside jobs. Programs
// that only use jobs do not need it.
//
// A queue on another store implements [pawl.Queue] and, for the rest of the contract, the
// optional methods that package queuetest lists. These functions do what is the same in every
// queue, so an engine decides only how it stores jobs. By method:
//
//   - Enqueue: [CheckBatch] refuses a batch before the transaction. In it, [BlockedBy] decides
//     whether a job with the same unique key keeps a new one out, and [Accept] fills in the
//     envelope. The engine gives the sequence.
//   - Fetch: [CheckRequest] fills in the defaults of a request; [Wants] and [Weight] read it. A
//     lease whose job may be cancelled needs a [Cancellation].
//   - Settle: [CheckSettle] refuses the call. For each settlement, [NextAttempt] and
//     [CountsAttempt] count, [FailureOf] makes the entry in the history, and [Took] is the length
//     of the attempt. [SettleErrors] makes the error of the call. After an ack in a transaction of
//     the app, call [MarkSettled].
//   - Cancel, Retry, Delete, RunNow, and Change: [CheckChange] refuses the call, and [Refuses]
//     returns the error of a job that is in the wrong state. [ReadsBody] says whether a condition
//     needs the payload, and [NotEligible] is the error for a job that does not match it.
//   - List: [CheckFilter] and [CheckListed]; [Parts] say what to read of each job. [FormatCursor]
//     and [ParseCursor] make and read cursors, with a [FilterScope]. A search for IDs begins with
//     [PartOfID]. Stats: [CountOf] and [AddCounts].
//   - Transfer: [CheckTransfer] refuses the call.
//   - Restore: [CheckRestore] refuses the call, and [JobSize] bounds its transactions. [Arrive]
//     prepares a job, and [Arrival] is the state that it will have.
//   - Check, backup, and other long work: [ProgressOf].
//   - Pause and everything else that takes a name: [CheckQueue] and [CheckKind].
//   - SaveCursor: [SaveCursor], for a queue with mutations. Progress and logs: [Notes] stores them by
//     mutations, or by the [NoteStore] that a queue is; Check reads them by [CheckRows].
//   - Mutate: [Named] refuses a job, or a unique key, that a mutation names twice.
//   - Limits: [Pace] decides when a rate lets jobs start.
//   - Any method whose context ended first: [NotAccepted].
//   - After each commit: [Reporter], with the events of the commit.
//   - An error that only this engine has: [NewSentinel].
//   - What an engine lacks: [SupportsJobs], [SupportsRestore], and [SupportsRequest] refuse it.
//
// [AppendRecord], [ParseRecord], and [CheckRecord] handle the form in which package bolt stores
// an envelope. Other engines may use it.
//
// A worker reads [Settled] and the [Cancellation] of a lease, calls [RunContext] for its handler,
// and checks policies with [CheckPolicy].
//
// A package with rows of its own describes them with [Space] and [Table], and changes them together with
// jobs in a [Mutation]. It can encode its values with [EncodePayload].
package driver
