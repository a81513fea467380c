// Dashboards does the ten tasks of docs/guide/dashboard.md in the dashboard of pawl, by jobctl, and as far as they can in River
// UI and asynqmon, by clicks in Chromium. It prints a table of the clicks, typed texts, and commands, and of the seconds of the
// fastest of some rounds.
//
//	GOWORK=off go run -C bench/dashboards .
//
// It needs Chromium, and the Debian packages redis-server and postgresql. Its servers end with it. Pawl and River have a
// million jobs, of which 700 000 are dead. asynq has 100 000 waiting tasks. It is a module of its own, outside of the workspace,
// so that nothing else depends on the peers.
package main
