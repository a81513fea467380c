package dashboard

import "net/http"

// route is one address of the dashboard. All addresses have one segment, so relative links work below any
// prefix, and names with slashes are parameters.
type route struct {
	method string
	path   string
	action Action // what it needs
	open   bool   // for all clients that pass the checks of host and origin: it reveals nothing about the queue
	free   bool   // it waits for no other page, and has no time limit
	serve  func(*request) error
}

// routes are all addresses. Nothing else is served.
var routes = build()

func build() []route {
	all := []route{
		{method: http.MethodGet, path: "style.css", open: true, serve: asset("style.css", "text/css; charset=utf-8")},
		{method: http.MethodGet, path: "script.js", open: true, serve: asset("script.js", "text/javascript; charset=utf-8")},
		{method: http.MethodGet, path: "icon.svg", open: true, serve: asset("icon.svg", "image/svg+xml")},
		{method: http.MethodPost, path: "theme", action: View, free: true, serve: setTheme},
		{method: http.MethodGet, path: "events", action: View, free: true, serve: stream},

		{method: http.MethodGet, path: "", action: View, serve: overview},
		{method: http.MethodGet, path: "queues", action: View, serve: queues},
		{method: http.MethodGet, path: "throughput", action: View, serve: throughput},
		{method: http.MethodGet, path: "jobs", action: View, serve: jobs},
		{method: http.MethodGet, path: "job", action: View, serve: job},
		{method: http.MethodGet, path: "limits", action: View, serve: limits},
		{method: http.MethodGet, path: "keys", action: ViewPayload, serve: keys},
		{method: http.MethodGet, path: "key", action: ViewPayload, serve: key},
		{method: http.MethodGet, path: "groups", action: View, serve: groups},
		{method: http.MethodGet, path: "group", action: View, serve: oneGroup},
		{method: http.MethodGet, path: "failures", action: View, serve: failures},
		{method: http.MethodGet, path: "runs", action: View, serve: runs},
		{method: http.MethodGet, path: "run", action: View, serve: run},
		{method: http.MethodGet, path: "verify", action: Check, serve: verify},
		{method: http.MethodGet, path: "schedules", action: View, serve: schedules},
		{method: http.MethodGet, path: "schedule", action: View, serve: oneSchedule},
		{method: http.MethodGet, path: "workers", action: View, serve: workers},
		{method: http.MethodGet, path: "file", action: View, serve: file},
		{method: http.MethodPost, path: "check", action: Check, free: true, serve: check},
		{method: http.MethodPost, path: "backup", action: Backup, free: true, serve: backup},
	}
	for _, c := range changes {
		all = append(all,
			route{method: http.MethodGet, path: c.path, action: c.action, serve: c.ask},
			route{method: http.MethodPost, path: c.path, action: c.action, serve: c.carryOut})
	}
	return all
}

// asset serves a file of this package.
func asset(name, kind string) func(*request) error {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return func(q *request) error {
		q.w.Header().Set("Content-Type", kind)
		q.w.Header().Set("Cache-Control", "no-cache")
		_, _ = q.w.Write(content) // only a disconnected client causes an error
		return nil
	}
}
