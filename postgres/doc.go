// Package postgres is the queue of package pawl in a PostgreSQL database, 13 or newer, for several
// processes and machines that share one queue.
//
//	q, err := postgres.Open(ctx, "postgres://app@db/app", nil)
//	…
//	defer q.Close()
//
// [Queue] implements [pawl.Queue], and what package dlq needs. Each process opens a queue of its
// own; [Options.Schema] keeps the apps of one database apart.
//
// Calls that come while a transaction is on its way share the next one, so many callers cost few
// commits. A call that changes the queue is durable when it returns nil, as far as the server's
// setting synchronous_commit makes it so.
//
// A server that is away is waited for, [Options.Timeout] long. A connection that breaks during a
// commit leaves no doubt once the server is back: the queue finds out what became of the commit.
//
// What the queue does by itself it does in the process that notices: there is no leader, and no
// background job on the server.
package postgres
