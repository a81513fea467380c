// Package handlers runs jobs that nobody has to write Go for: commands, and HTTP requests.
//
//	runner, err := handlers.NewRunner("/var/lib/app/jobs.runs", []string{"pdftotext", "/opt/app/report"}, nil)
//	...
//	sender, err := handlers.NewSender(nil)
//	...
//	w := worker.New(q, nil)
//	worker.Handle(w, handlers.Exec, runner.Run)
//	worker.Handle(w, handlers.HTTP, sender.Send)
//
//	handlers.Exec.Enqueue(ctx, q, handlers.Command{Args: []string{"pdftotext", "a.pdf", "a.txt"}})
//	handlers.HTTP.Enqueue(ctx, q, handlers.Request{Method: "POST", URL: "https://example.com/hook", Body: body})
//
// A few nouns carry it:
//
//   - [Command] is what a job of kind [Exec] runs; a [Runner] runs it, and [Logs] keep what
//     it wrote.
//   - [Request] is what a job of kind [HTTP] sends; a [Sender] sends it.
//
// Both take what a job says as the word of somebody who may enqueue and nothing else: what
// that person may do is decided by the options that the operator gives when the worker
// starts, and everything is refused that those do not allow. A job that is refused goes to
// the dead letters at once, with an error that says what to change. Delivery is at least
// once, as everywhere in this module: a command runs again, and a request is sent again,
// when their worker died before their job was acked.
//
// # Commands: what may run
//
// A program is identified by its resolved path: absolute, with all symbolic links followed.
// The allow-list is resolved when the runner is made, the job's program when it runs, from
// the runner's PATH and not the job's; the two must be the same, by the same name, and that
// resolved path is what is run. The name counts because one file can be many programs:
// where ls is a link to busybox, allowing ls does not allow sh.
//
// What the operator has to know:
//
//   - The list says which programs run, not what they do. A program that runs others allows
//     everything: shells, interpreters, env, xargs, find, nice, ssh, rsync, tar, git and make are
//     such. Put a script of your own on the list in their place, and let that decide.
//   - Whoever can write to a program on the list, or to a folder above it, decides what
//     runs. What everybody may write to is refused.
//   - A job may set no variable but those that ExecOptions.JobEnv names. Each of them is
//     as much power as the programs on the list make of it.
//   - Commands run as the user of the worker, with its limits of memory, time and files.
//     Run the worker as a user that may do little.
//   - Arguments and output lie in the queue's file: no place for secrets.
//
// # Commands: how they end
//
// A command has a session and a process group of its own, no terminal, an empty standard
// input unless the job says what is in it, and in its environment PAWL_JOB_ID, PAWL_QUEUE,
// PAWL_ATTEMPT (1 on the first run), PAWL_MAX_ATTEMPTS and PAWL_LAST_ATTEMPT (true or false).
//
// Exit code 0 is a success; [DefaultPermanent] lists the codes that no retry helps; all
// others are retried, and so is a program that a signal ended. The job may say otherwise.
// The end of the output goes into the job's history, as text; [ExecOptions].OnRun gets the
// first and the last part of it as it is.
//
// When the context of a run ends, by a timeout, a cancel or the stop of the worker, the
// group gets SIGTERM, and after [ExecOptions].Grace SIGKILL; what the command then says of
// itself does not make it a success. When the first process of a run has ended by itself,
// what is left of its group is killed at once: nothing of a run goes on behind it. A job is
// no way to start a daemon.
//
// # Commands: no orphans
//
// When a worker is killed it cannot end its commands. On Linux the kernel kills the first
// process of each. For what that has started, and on other systems, the runner leaves notes
// in its state folder: a file for each run, on which the command and all that it starts hold
// a lock by a descriptor that they inherit (number 99). The next runner on that folder
// finds the files and kills what holds their locks before it runs anything, and a job whose
// earlier run cannot be ended fails, to be tried again, with an error that names the process.
//
//   - On Linux it finds the processes of a run by that descriptor, by PAWL_RUN in their
//     environment, which names the run, and by the session and the group of one that it has
//     found so. It does not find a process that has closed the descriptor, cleared its
//     environment and left the session, as daemons do. One that has the lock and cannot be
//     ended (another user's, as by sudo) is waited for.
//   - On macOS and the BSDs, where this is not tested, it knows the group of the run, and
//     whether somebody has the lock. A process that has left the group and closed the
//     descriptor is not noticed.
//   - Orphans live until the next runner starts: let something restart the worker.
//   - A state folder that is deleted takes the notes with it: keep it out of reach of what
//     cleans up temporary files.
//   - On other systems commands are not run: [NewRunner] says so.
//
// None of that is a wall around a program that wants to escape.
//
// # Requests: what may be reached
//
// Only http and https, and only public addresses: not the machine itself, its own public
// addresses included, private networks, link-local addresses (where clouds keep credentials),
// or any other special range, also not written as IPv6 addresses that lead to them. A public
// address that leads back inside by a router (NAT) looks like any other. A host is resolved
// once, refused if one of its addresses is, and the connection goes to the address that was
// checked, so a name server that changes its mind gains nothing. HTTPOptions.Allow,
// AllowHosts, Hosts and Ports make exceptions and narrow it further. Proxies of the
// environment are not used: they would connect to what nobody has checked. Where all traffic
// has to pass through one, let that proxy decide, and use another handler.
//
// Redirects are checked like the first address, at most [MaxRedirects], and never from https
// to http. Another host is not told the headers of the job, nor its body; a method other than
// GET and HEAD is sent again only where the status says so (307, 308).
//
// The header Idempotency-Key has the ID of the job, unless the job has one of its own: it is
// the same on every try, so a server that knows the header does the work once.
//
// See [Sender.Send] and [Runner.Run] for what becomes of a job.
package handlers
