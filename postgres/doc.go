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
// Concurrent calls of a process share a transaction, so many callers need few commits. When its
// call returns nil, a change is as durable as the server's setting synchronous_commit makes it.
//
// If the server cannot be reached, calls wait for up to [Options.Timeout]. If a connection breaks
// during a commit, the queue connects again and finds out whether the commit happened.
//
// There is no leader, and no background job on the server. Each process that finds a due job or
// an expired lease moves the job.
package postgres
