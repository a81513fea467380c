// Package connect lets several processes of one machine use the queue in one bbolt file.
//
// One process at a time can open the file. A [Client] opens it if it is free, and serves it to the
// others; otherwise it talks to the process that owns the file, through its socket:
//
//	c, err := connect.Open(ctx, "jobs.db", nil)
//	if err != nil { … }
//	defer c.Close()
//	job, err := SendWelcome.Enqueue(ctx, c, Welcome{To: "ada@example.com"})
//
// When the owner ends, even by kill -9, a call of any client moves over: that client opens the file, or
// finds the new owner. A nil error means what it means everywhere: the job is synced to the disk.
//
// [Client.Elect] runs a worker in the process that gets the file. The others wait, and one of them
// takes over when the owner ends:
//
//	err := c.Elect(ctx, func(ctx context.Context, q *bolt.Queue) error {
//		w := worker.New(q, nil)
//		worker.Handle(w, SendWelcome, welcome)
//		return w.Run(ctx)
//	})
//
// A client without Elect gives the file up as soon as another process wants it for its worker. So jobs do
// not wait behind a process that only enqueues.
//
// The owner may also be an app that calls bolt.Open and admin.Serve; clients then use its socket for as
// long as it runs. The socket is for the user of the owner, and for the superuser. On Windows there are
// no such sockets: there a second process gets bolt.ErrLocked.
package connect
