// Package sqlite is a job queue in a SQLite database, for an app that keeps its data there. The app
// can enqueue and ack jobs in its own transactions. The driver is modernc.org/sqlite, which needs no
// C compiler.
//
//	q, err := sqlite.Open(ctx, "app.sqlite", nil)
//
// The queue keeps the whole contract. A change is on stable storage when its call returns: the database
// is in WAL mode, and each commit syncs the write-ahead log. Concurrent calls share a commit.
//
// Only one process can have the queue open at a time. All processes can have other connections to
// the file for the app's own data. In the process of the queue, they must use the same driver.
// Another SQLite library in that process damages the file.
package sqlite
