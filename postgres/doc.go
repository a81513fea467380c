// Package postgres is a job queue in a PostgreSQL database, version 13 or later, for several
// processes and machines that share one queue.
//
//	q, err := postgres.Open(ctx, "postgres://app@db/app", nil)
//	…
//	defer q.Close()
//
// [Queue] implements [pawl.Queue]. Each process opens its own Queue. [Options.Schema] keeps the
// apps of one database apart.
//
// Concurrent calls of a process share a transaction, so many callers need few commits. A change is
// durable when its call returns nil, as far as the server's setting synchronous_commit makes it so.
//
// If the server is away, calls wait for it for up to [Options.Timeout]. If a connection breaks
// during a commit, the queue finds out whether the commit happened as soon as the server is back.
//
// There is no leader, and no background job on the server. The process that notices that a delayed
// job is due, or that a lease has expired, moves the job.
package postgres
