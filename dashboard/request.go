package dashboard

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// request is one request on its way through the dashboard. Templates call its exported methods.
type request struct {
	*http.Request
	d     *Dashboard
	w     http.ResponseWriter
	route *route
	ctx   context.Context
	began bool   // the answer has begun
	news  uint64 // the version of the watcher before this page read anything
	stats *admin.Stats
}

// serve finds the route, checks whether the user may use it, and answers.
func (q *request) serve() error {
	if err := q.d.admit(q.Request); err != nil {
		return err
	}
	name := strings.TrimPrefix(q.URL.Path, "/")
	if q.URL.Path == "" { // the prefix without its slash, below which no relative link works
		q.w.Header().Set("Location", "./"+path.Base("/"+strings.SplitN(q.RequestURI, "?", 2)[0])+"/")
		q.w.WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	method := q.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	at := slices.IndexFunc(routes, func(r route) bool { return r.path == name && r.method == method })
	if at < 0 {
		if err := q.authorize(View); err != nil {
			return err
		}
		return &refusal{http.StatusNotFound, "There is no such page.", "The menu has all pages."}
	}
	if q.route = &routes[at]; q.route.open {
		return q.route.serve(q)
	}
	if err := q.authorize(q.route.action); err != nil {
		if q.route.method == http.MethodPost {
			q.d.log.Warn("dashboard change refused", "action", string(q.route.action), "path", q.route.path, "user", q.d.opts.User(q.Request))
		}
		return err
	}
	if err := q.ParseForm(); err != nil {
		return &refusal{http.StatusBadRequest, "The form cannot be read.", "It may be larger than 1 MiB."}
	}
	if q.route.free {
		q.ctx = q.Context()
		return q.route.serve(q)
	}
	ctx, cancel := context.WithTimeout(q.Context(), maxWork)
	defer cancel()
	q.ctx = ctx
	select {
	case q.d.working <- struct{}{}:
		defer func() { <-q.d.working }()
	case <-time.After(maxWait):
		return admin.ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
	q.news, q.stats = q.d.watch.look(ctx)
	return q.route.serve(q)
}

// fail answers with a page about an error.
func (q *request) fail(err error) {
	if q.Context().Err() != nil && q.ctx != nil {
		return // the client has disconnected
	}
	status, text, help := statusOf(err), err.Error(), ""
	var refused *refusal
	if errors.As(err, &refused) {
		help = refused.help
	}
	if status >= 500 {
		q.d.log.Error("dashboard page failed", "path", q.URL.Path, "error", err)
	}
	if q.began {
		panic(http.ErrAbortHandler)
	}
	page := &view{request: q, Title: http.StatusText(status), Body: problem{text, help}, Bare: status == http.StatusForbidden && !q.Can(View) || status == http.StatusMisdirectedRequest}
	q.write(status, "problem", page)
}

// problem is what the page about an error shows.
type problem struct{ Text, Help string }

// survive turns a panic into an answer.
func (q *request) survive() {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler:
		panic(p)
	}
	q.d.log.Error("dashboard page panicked", "path", q.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if q.began {
		panic(http.ErrAbortHandler)
	}
	q.fail(errors.New("the page panicked; the app's log says more"))
}

// view is what the templates show.
type view struct {
	*request
	Title string
	Nav   string // the entry of the menu
	Body  any
	Bare  bool // no menu

	commands []string
}

// show answers with a page.
func (q *request) show(template, nav, title string, body any, commands ...string) error {
	if _, err := q.Stats(); err != nil {
		return err
	}
	q.write(http.StatusOK, template, &view{request: q, Title: title, Nav: nav, Body: body, commands: commands})
	return nil
}

// write renders a page before it sends anything, so that no page is truncated.
func (q *request) write(status int, template string, v *view) {
	var b bytes.Buffer
	if err := templates()[template].ExecuteTemplate(&b, "layout", v); err != nil {
		q.d.log.Error("dashboard page failed", "path", q.URL.Path, "error", err)
		http.Error(q.w, "This page cannot be shown; the app's log says more.", http.StatusInternalServerError)
		return
	}
	q.began = true
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(status)
	if q.Method != http.MethodHead {
		_, _ = q.w.Write(b.Bytes()) // only a disconnected client causes an error
	}
}

// Stats returns the state of the queue, which a request reads once.
func (q *request) Stats() (*admin.Stats, error) {
	if q.stats == nil {
		s, err := q.d.admin.Stats(q.ctx)
		if err != nil {
			return nil, err
		}
		q.stats = &s
	}
	return q.stats, nil
}

// QueueStats returns the state of a queue; the zero value if there is none of that name.
func (q *request) QueueStats(name string) (one pawl.QueueStats) {
	if s, err := q.Stats(); err == nil {
		for _, one := range s.Queues {
			if one.Name == name {
				return one
			}
		}
	}
	return one
}

// QueueName returns the name of the whole queue that users see.
func (v *view) QueueName() string {
	switch s := v.stats; {
	case v.d.opts.Name != "":
		return v.d.opts.Name
	case s != nil && s.Path != "":
		return path.Base(strings.ReplaceAll(s.Path, `\`, "/"))
	case s != nil && s.Process != nil:
		return s.Process.Name
	}
	return "pawl"
}

// State says whether an app has the queue; "" on a page that has not read it.
func (v *view) State() string {
	switch {
	case v.stats == nil:
		return ""
	case v.stats.Process == nil:
		return "no app here"
	}
	return "live"
}

// Live reports whether the page can update itself.
func (v *view) Live() bool { return v.stats != nil && v.stats.Process != nil && v.Can(View) }

// News is where the stream of this page begins, so that it misses no change since the page was read.
func (v *view) News() uint64 { return v.news }

// ReadOnly reports whether all changes are refused.
func (v *view) ReadOnly() bool { return v.d.opts.ReadOnly }

// Now returns the time.
func (q *request) Now() time.Time { return q.d.opts.Now() }

// Commands returns the command lines that do what the page does.
func (v *view) Commands() []string { return v.commands }

// Theme returns the theme that the user chose: light, dark, or "" for the theme of the system.
func (v *view) Theme() string {
	if c, err := v.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

const themeCookie = "pawl_theme"

// setTheme stores the theme. A cookie without a path holds for the folder of the page, which is right
// below any prefix.
func setTheme(q *request) error {
	switch theme := q.PostForm.Get("theme"); theme {
	case "light", "dark", "":
		c := &http.Cookie{Name: themeCookie, Value: theme, SameSite: http.SameSiteStrictMode, HttpOnly: true, MaxAge: 365 * 24 * 3600}
		if theme == "" {
			c.MaxAge = -1
		}
		http.SetCookie(q.w, c)
		q.w.Header().Set("Location", "./")
		q.w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return invalid("theme", "it is none of light, dark, and empty")
}

// clipped shortens a text for a message.
func clipped(s string) string { return ellipsis.Truncate(s, 64) }
