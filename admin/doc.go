// Package admin lets operators see and steer a queue, whether its app runs or not. It is
// what jobctl stands on, and an app may use it too.
//
// A bbolt file belongs to one process at a time, so nobody else can look into the file of
// a running app. The app serves it:
//
//	q, err := bolt.Open("jobs.db", nil)
//	…
//	server, err := admin.Serve(q, nil)
//	if err != nil { … }
//	defer server.Close()
//
// From then on jobctl --db jobs.db works while the app does. Few nouns make it up:
//
//   - Admin is what an operator does: look, list, retry, cancel, pause, check, back up.
//     [Of] does it in the process that has the queue, [File] to the file of a stopped
//     app, [Dial] by asking a running one. [Open] finds out which of the two it is.
//   - Workflows is the same for the runs of workflows.
//   - Server is a socket beside the file that only its owner can reach, with a note that
//     says who serves.
//   - [Handler] is what it answers with: HTTP and JSON. An app may mount it elsewhere,
//     behind its own authentication.
//   - Job is one job in JSON: what the API sends, what an export has a line of, and what
//     jobctl prints for programs. Nothing is lost on the way there and back.
//
// net/http is linked only into programs that import this package.
package admin
