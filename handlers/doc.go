// Package handlers has two ready-made job handlers: one runs commands, one sends HTTP requests.
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
// A [Runner] runs the [Command] of a job of kind [Exec]; [Logs] keeps its output. A [Sender] sends
// the [Request] of a job of kind [HTTP].
//
// Both treat a job as untrusted input. The operator's options decide what a job may do, and
// everything else is refused. A refused job becomes dead at once, with an error that says what
// to change. Delivery is at least once, as everywhere in this module: a command runs again, and
// a request is sent again, if the worker dies before the job is acked.
//
// # Commands: what may run
//
// A program is identified by its resolved path: absolute, with all symbolic links followed.
// NewRunner resolves the allow-list. The program of a job is resolved when the job runs, from
// the runner's PATH and not the job's. The resolved path must be on the list under the same
// base name, and that path is what runs. The name counts because one file can be many programs:
// if ls is a link to busybox, allowing ls does not allow sh.
//
// Operators should know:
//
//   - The list says which programs run, not what they do. A program that starts other programs
//     allows everything: shells, interpreters, env, xargs, find, nice, ssh, rsync, tar, git and
//     make do. Put your own script on the list instead, and let it decide.
//   - Whoever can write to a listed program, or to a folder above it, decides what runs.
//     Programs that everybody can write to are refused.
//   - A job may set only the variables that ExecOptions.JobEnv names. The listed programs
//     determine how much power each variable has.
//   - Commands run as the worker's user, under its limits for memory, time and files. Run the
//     worker as a user with few rights.
//   - Arguments and output are stored in the queue's file. Do not put secrets there.
//
// # Commands: how they end
//
// A command has its own session and process group, no terminal, and an empty standard input
// unless the job provides one. Its environment has PAWL_JOB_ID, PAWL_QUEUE, PAWL_ATTEMPT (1 on
// the first attempt), PAWL_MAX_ATTEMPTS and PAWL_LAST_ATTEMPT (true or false).
//
// Exit code 0 is success. The codes of [DefaultPermanent] make the job dead. Every other code
// is retried, and so is a program that a signal ended. A job can override this. The end of the
// output goes into the job's history as text; [ExecOptions].OnRun receives the first and the
// last part of it unchanged.
//
// When the context of an attempt ends, because of a timeout, a cancellation or a stop of the
// worker, the group gets SIGTERM, and SIGKILL after [ExecOptions].Grace. Such an attempt never
// succeeds, whatever the exit code. When the first process of an attempt exits by itself, the rest
// of its group is killed at once. A job cannot start a daemon.
//
// # Commands: no orphans
//
// A killed worker cannot end its commands. On Linux, the kernel kills the first process of each
// command. For its descendants, and on other systems, the runner keeps one file per attempt in
// its state folder. The command and everything it starts hold a lock on that file through an
// inherited descriptor (number 99). The next runner on the folder kills the holders of those
// locks before it runs anything. If the previous attempt of a job cannot be ended, the job fails
// with an error that names the process, and is retried.
//
//   - On Linux the runner finds the processes of an attempt by the descriptor, by PAWL_RUN in
//     their environment, and by the session and group of processes found that way. It does not
//     find a process that closed the descriptor, cleared its environment and left the session, as
//     daemons do. It waits for a process that holds the lock but cannot be killed, such as
//     another user's after sudo.
//   - On macOS and the BSDs, where this is not tested, it knows the group of the attempt and
//     whether the lock is held. It does not notice a process that left the group and closed the
//     descriptor.
//   - Orphans live until the next runner starts. Have a supervisor restart the worker.
//   - Deleting the state folder deletes its files. Keep it away from cleaners of temporary files.
//   - On other systems [NewRunner] fails with errors.ErrUnsupported.
//
// None of this contains a program that wants to escape.
//
// # Requests: what may be reached
//
// Only http and https to public addresses are allowed. The sender refuses the machine itself,
// including its own public addresses, private networks, link-local addresses (where clouds keep
// credentials), and every other special range, including IPv6 addresses that lead there. A public
// address that a router leads back inside (NAT) cannot be recognized. The sender resolves a host
// once, refuses it if any of its addresses is refused, and connects to a checked address. So a
// name server gains nothing by changing its answer. HTTPOptions.Allow, AllowHosts, Hosts and
// Ports widen or narrow the rules. Proxies from the environment are not used, because they would
// connect to unchecked addresses. If all traffic must pass through a proxy, let the proxy decide,
// and use another handler.
//
// Redirects are checked like the first address. At most [MaxRedirects] are followed, and none
// from https to http. The job's headers and body are not sent to another host. Methods other
// than GET and HEAD are repeated only after status 307 or 308.
//
// The header Idempotency-Key holds the job's ID unless the job sets that header. It is the same
// on every attempt, so a server that supports it does the work once.
//
// [Sender.Send] and [Runner.Run] document how a job ends.
package handlers
