// Package admin lets operators inspect and control a queue, whether its app runs or not. jobctl
// is built on it, and an app may use it too.
//
// It works on the queue of any engine that is a [Store]. A bbolt file belongs to one process at a
// time, so no other process can read the file of a running app. Instead, the app serves it:
//
//	q, err := bolt.Open("jobs.db", nil)
//	…
//	server, err := admin.Serve(q, nil)
//	if err != nil { … }
//	defer server.Close()
//
// From then on jobctl --db jobs.db works while the app runs. The package has few concepts:
//
//   - Admin is what an operator does: look, list, retry, cancel, pause, check, back up.
//     [Of] does it in the process that has the queue, [Offline] on the file of a stopped
//     app, and [Dial] through a running app. [Open] finds out which of the two applies.
//   - [DialFile] reaches the app that serves a file, and [AwaitEnd] waits for its end. Package
//     connect makes of them a client that survives changes of the owner.
//   - Workflows is the same for workflow runs.
//   - Server is a socket beside the file that only its owner can reach, with a note that
//     identifies the process that serves.
//   - [Handler] answers at that socket: HTTP and JSON. An app may mount it elsewhere,
//     behind its own authentication.
//   - Job is one job in JSON: what the API sends, what each line of an export contains, and
//     what jobctl prints for programs. The round trip loses nothing.
//
// net/http is linked only into programs that import this package.
package admin
