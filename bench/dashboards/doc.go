// Dashboards does in River UI and asynqmon some of the ten tasks of docs/guide/dashboard.md, by clicks in Chromium, and
// prints the clicks and the least seconds of some rounds. TestTenTasks of dashboard/browsertest does all of them in the
// dashboard of pawl.
//
//	GOWORK=off go run -C bench/dashboards .
//
// It needs Chromium, and the Debian packages redis-server and postgresql. Its servers end with it. River has a million jobs,
// of which 700 000 were discarded. asynq has 100 000 waiting tasks. It is a module of its own, outside of the workspace,
// so that nothing else depends on the peers.
package main
