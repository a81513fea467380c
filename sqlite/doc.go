// Package sqlite is a job queue in a SQLite database, for an app that keeps its data in one: the app
// enqueues and acks jobs in its own transactions. The driver is modernc.org/sqlite, which needs no C
// compiler.
//
//	q, err := sqlite.Open(ctx, "app.sqlite", nil)
//
// The queue keeps the whole contract. A change is on stable storage when its call returns: the database
// is in WAL mode, and each commit syncs the log. Calls of many goroutines share a commit.
//
// One process has the queue open at a time. The app's own connections to the file, of this process or of
// others, are as free as ever.
package sqlite
