package dashboard

import (
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// Rule: if the app has not configured who may do what, its dashboard shows nothing, and says what to do.
func TestClosedWithoutAuthorize(t *testing.T) {
	k := newKit(t)
	k.opts.Authorize = nil
	k.restart()
	for _, r := range routes {
		w := k.send(r.method, r.path, nil)
		if r.open {
			require.Equal(t, http.StatusOK, w.Code, r.path)
			continue
		}
		require.Equal(t, http.StatusForbidden, w.Code, r.path)
		require.Contains(t, w.Body.String(), "Set Authorize in dashboard.Options", r.path)
		require.NotContains(t, w.Body.String(), "app.db", r.path)
	}
	d, err := New(admin.Of(k.q), nil)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/", nil))
	require.Equal(t, http.StatusForbidden, w.Code)
}

// needs repeats, independently of the table of routes, which action each route needs. "" is for every user.
var needs = map[string]Action{
	"GET style.css": "", "GET script.js": "", "GET icon.svg": "",
	"GET ": View, "GET queues": View, "GET throughput": View, "GET jobs": View, "GET job": View, "GET failures": View,
	"GET limits": View, "GET keys": ViewPayload, "GET key": ViewPayload, "GET groups": View, "GET group": View, "GET runs": View, "GET run": View,
	"GET schedules": View, "GET schedule": View, "GET workers": View, "GET file": View, "GET events": View, "POST theme": View,
	"GET retry": Retry, "POST retry": Retry, "GET cancel": Cancel, "POST cancel": Cancel, "GET delete": Delete, "POST delete": Delete,
	"GET release-key": Retry, "POST release-key": Retry, "GET edit": Edit, "POST edit": Edit, "GET run-now": RunNow, "POST run-now": RunNow, "GET pause-queue": Queue, "POST pause-queue": Queue,
	"GET resume-queue": Queue, "POST resume-queue": Queue, "GET cancel-run": Cancel, "POST cancel-run": Cancel,
	"GET terminate-run": Terminate, "POST terminate-run": Terminate, "GET pause-run": Run, "POST pause-run": Run,
	"GET resume-run": Run, "POST resume-run": Run, "GET fork": Fork, "POST fork": Fork, "GET signal": Signal, "POST signal": Signal,
	"GET close-group": Group, "POST close-group": Group, "GET cancel-group": Cancel, "POST cancel-group": Cancel,
	"GET pause-schedule": Schedule, "POST pause-schedule": Schedule, "GET resume-schedule": Schedule, "POST resume-schedule": Schedule,
	"GET trigger-schedule": Schedule, "POST trigger-schedule": Schedule, "POST check": Check, "GET verify": Check, "POST backup": Backup,
}

// Rule: the file from which the tests in a browser read what they must open and do has each route.
func TestBrowserKnowsEveryRoute(t *testing.T) {
	const path = "testdata/routes.txt"
	var want strings.Builder
	for _, r := range routes {
		kind := r.method
		if r.method == http.MethodGet && (r.open || r.free) {
			kind = "PART" // a page reads it
		}
		fmt.Fprintf(&want, "%s /%s\n", kind, r.path)
	}
	if *updateRoutes {
		require.NoError(t, os.WriteFile(path, []byte(want.String()), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got), "run go test ./dashboard -run BrowserKnowsEveryRoute -update-routes, and add the route to the pages or the actions of dashboard/browsertest")
}

var updateRoutes = flag.Bool("update-routes", false, "write testdata/routes.txt anew")

// form fills in what every route may want.
func (k *kit) form(path string) url.Values {
	form := url.Values{"name": {"email"}, "id": {k.dead[0].String()}, "theme": {"dark"}, "value": {"true"}}
	switch {
	case strings.HasSuffix(path, "-schedule"), path == "schedule":
		form.Set("name", "nightly")
	case strings.HasSuffix(path, "-group"), path == "group":
		form.Set("name", "import/7")
	case path == "key", path == "keys":
		form.Set("queue", "sync")
		form.Set("name", "tenant/42")
	case path == "signal":
		form.Set("name", "approved")
		fallthrough
	case strings.HasSuffix(path, "-run"), path == "run", path == "fork":
		form.Set("from", "charge")
		form.Set("to", "2026/1043")
		form.Set("id", k.run.String())
	case path == "edit":
		form.Set("payload", "{}")
	case path == "cancel":
		form.Set("id", k.ready.String())
	case path == "run-now":
		form.Set("id", k.delayed.String())
	case path == "runs":
		form.Del("id")
	}
	return form
}

// Rule: each route needs exactly the action that this table names, for the page that asks and for the
// change. A route without an entry fails.
func TestRoutesNeedTheirActions(t *testing.T) {
	k := newKit(t)
	require.Len(t, routes, len(needs))
	for _, route := range routes {
		name := route.method + " " + route.path
		need, known := needs[name]
		require.True(t, known, "the table of this test has no entry for %q", name)
		if name == "GET events" {
			continue // TestStreams
		}
		for _, has := range append(Actions(), "") {
			k.opts.Authorize = func(_ *http.Request, a Action) bool { return a == has }
			k.restart()
			path, form := route.path, k.form(route.path)
			if route.method == "GET" {
				path += "?" + form.Encode()
			}
			w := k.send(route.method, path, form)
			allowed := w.Code != http.StatusForbidden
			require.Equal(t, need == "" || has == need, allowed, "%s with the action %q gives %d", name, has, w.Code)
		}
	}
}

// whole is everything that operators see of the queue.
func (k *kit) whole() string {
	k.Helper()
	var b strings.Builder
	_, err := admin.Export(k.Context(), admin.Of(k.q), &b, nil)
	require.NoError(k, err)
	_, rows, _ := strings.Cut(b.String(), "\n") // the first line has the time
	return rows
}

// Rule: a user of a read-only dashboard, and a user who may only look, change nothing by any route.
func TestReadersChangeNothing(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"read-only": func(o *Options) { o.ReadOnly = true },
		"viewer":    func(o *Options) { o.Authorize = func(_ *http.Request, a Action) bool { return !a.Changes() } },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			set(&k.opts)
			k.restart()
			before := k.whole()
			for _, route := range routes {
				if route.path == "events" {
					continue
				}
				form := k.form(route.path)
				w := k.send(route.method, route.path+"?"+form.Encode(), form)
				require.Equal(t, !route.open && route.action.Changes(), w.Code == http.StatusForbidden, "%s %s: %d", route.method, route.path, w.Code)
			}
			require.Equal(t, before, k.whole())
			page := k.page("jobs")
			for _, word := range []string{">Retry<", ">Delete<", ">Cancel<", ">Run now<"} {
				require.NotContains(t, page, word)
			}
		})
	}
}

// Rule: a GET request changes nothing, whatever user sends it.
func TestPagesChangeNothing(t *testing.T) {
	k := newKit(t)
	before := k.whole()
	for _, path := range k.pages() {
		k.page(path)
	}
	require.Equal(t, before, k.whole())
}

// Rule: requests under another name, and changes from another site, are refused.
func TestOtherSites(t *testing.T) {
	k := newKit(t)
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:1": 200, "[::1]:80": 200, "LOCALHOST.": 200,
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:80": 421, "": 421, "[": 421,
	} {
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		k.d.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, host)
	}
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		form := url.Values{"id": {k.dead[0].String()}}
		r := httptest.NewRequest("POST", "http://localhost/retry", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		k.d.ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code, header)
		require.Equal(t, pawl.Dead, k.state(k.dead[0]))
	}
	_, err := New(admin.Of(k.q), &Options{Hosts: []string{" "}})
	require.ErrorIs(t, err, pawl.ErrInvalid)
}

var (
	scripts   = regexp.MustCompile(`(?i)<script[^>]*>`)
	quotes    = regexp.MustCompile(`"[^"]*"`)
	inline    = regexp.MustCompile(`(?i)<[^>]+\s(on[a-z]+|style)\s*=`)
	addresses = regexp.MustCompile(`(?i)\s(?:src|href|action|formaction)="([^"]*)"`)
)

// check rejects markup that the policy forbids, and addresses that are not relative.
func checkMarkup(t *testing.T, path, page string) {
	t.Helper()
	require.Equal(t, []string{`<script src="script.js" defer>`}, scripts.FindAllString(page, -1), path)
	require.NotRegexp(t, inline, quotes.ReplaceAllString(page, `""`), path) // a value may contain anything
	for _, m := range addresses.FindAllStringSubmatch(page, -1) {
		u, err := url.Parse(html.UnescapeString(m[1]))
		require.NoError(t, err, path)
		require.True(t, u.Scheme == "" && u.Host == "" && !strings.HasPrefix(u.Path, "/"), "%s: %s", path, m[1])
		require.False(t, strings.Contains(strings.TrimPrefix(u.Path, "./"), "/"), "%s: %s", path, m[1])
	}
}

// Rule: every answer has the policy, is stored nowhere, and has no inline script or style and no address of
// another site.
func TestHeadersAndMarkup(t *testing.T) {
	k := newKit(t)
	for _, path := range append(k.pages(), "nothing", "job?id=nonsense", "jobs?state=x") {
		w := k.get(path)
		require.Equal(t, policy, w.Header().Get("Content-Security-Policy"), path)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), path)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"), path)
		checkMarkup(t, path, w.Body.String())
	}
	for _, directive := range []string{"unsafe", "http", "*", "data:"} {
		require.NotContains(t, policy, directive)
	}
}

// Rule: the pages work below any prefix.
func TestPrefixes(t *testing.T) {
	k := newKit(t)
	for _, prefix := range []string{"", "/ops", "/a/b"} {
		mux := http.NewServeMux()
		mux.Handle(prefix+"/", http.StripPrefix(prefix, k.d))
		server := httptest.NewServer(mux)
		for _, path := range []string{prefix + "/", prefix + "/jobs?state=dead", prefix + "/style.css"} {
			answer, err := server.Client().Get(server.URL + path)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusOK, answer.StatusCode, path)
		}
		server.Close()
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://localhost/a/ops?x=1", nil)
	http.StripPrefix("/a/ops", k.d).ServeHTTP(w, r)
	require.Equal(t, "./ops/", w.Header().Get("Location"))
}

// hostile texts try to become markup, addresses, scripts, or shell commands.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `</title><svg/onload=alert(1)>`,
	"`${alert(1)}`", `{{.Body}}`, `</pre></code><iframe src=//evil.example>`, `&lt;script&gt;`, "\x00\x1b[31m\u202e\ufeff", "\xff\xfe<b>", `$(reboot); ' && reboot`,
	`<!--`, `]]>`, `</textarea><form action=//evil.example>`, strings.Repeat("<", 300),
}

// Rule: hostile names, payloads, errors, stacks, and headers appear as text.
func TestHostileTexts(t *testing.T) {
	k := newKit(t)
	for i, text := range hostile {
		payload, err := driver.EncodePayload(map[string]string{text: text})
		require.NoError(t, err)
		if i%2 == 1 {
			payload = []byte(text)
		}
		name := strings.ReplaceAll(text[:min(len(text), 200)], "\x00", "") // which names may not have
		id := k.restore(&pawl.Envelope{ID: pawl.NewID(k.d.opts.Now()), Queue: name, Kind: name, Payload: payload, Failures: 1, Key: name, Group: name, UniqueKey: name, IdempotencyKey: name,
			Headers: map[string]string{name: text}, History: []pawl.Failure{{Attempt: 1, At: k.d.opts.Now(), Error: text, Stack: text}}})
		q := url.QueryEscape(name)
		for _, path := range []string{
			"job?id=" + id.String(), "jobs?queue=" + q, "jobs?kind=" + q + "&error=" + q, "jobs?group=" + q, "pause-queue?name=" + q, "failures?queue=" + q,
			"retry?select=all&queue=" + q, "", "runs?flow=" + q + "&id=" + q,
			"jobs?members=" + q, "keys?queue=" + q + "&after=" + q, "key?queue=" + q + "&name=" + q, "groups?after=" + q, "group?name=" + q, "close-group?name=" + q,
		} {
			k.harmless(path)
		}
		for _, path := range []string{"jobs?state=" + q, "job?id=" + q, "run?id=" + q, "schedule?name=" + q, "jobs?payload=" + q, "jobs?since=" + q, "jobs?after=" + q, "runs?after=" + q, "failures?after=" + q, "schedules?after=" + q} {
			w := k.get(path)
			require.Less(t, w.Code, 500, "%s: %s", path, w.Body)
			checkMarkup(t, path, w.Body.String())
		}
	}
	for _, path := range []string{"queues", "workers", "groups"} { // each has all texts now
		k.harmless(path)
	}
}

// harmless requires that no text on a page is markup.
func (k *kit) harmless(path string) {
	k.Helper()
	w := k.get(path)
	require.Less(k.T, w.Code, 500, "%s: %s", path, w.Body)
	checkMarkup(k.T, path, w.Body.String())
	for _, markup := range []string{"<script>alert", "<img", "<iframe", "<svg/onload", "<form action=//"} {
		require.NotContains(k.T, w.Body.String(), markup, path)
	}
}

// Rule: a command line is one line, whose words a shell reads as they are.
func TestCommandsAreQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"app.db": "app.db", "a b": "'a b'", "it's": `'it'\''s'`, "$(reboot)": "'$(reboot)'", "": "''", "a\nreboot": "'a reboot'", "~": "'~'", "é": "'é'",
	} {
		require.Equal(t, want, quoted(word))
	}
}

// Rule: no user sees hidden fields, and only users with the action see payloads. Filters on payloads do not
// reveal what they would hide.
func TestPayloadsAreProtected(t *testing.T) {
	k := newKit(t)
	for _, path := range k.pages() {
		require.NotContains(t, k.get(path).Body.String(), "hunter2", path)
	}
	page := k.page("job?id=" + k.ready.String())
	for _, shown := range []string{"9007199254740993", "&#34;password&#34;: &#34;(hidden)&#34;", "trace", "abc"} {
		require.Contains(t, page, shown)
	}
	for _, term := range []string{"password~hunter", "PASSWORD=x", `"password"="hunter2"`, `"pass\x77ord"~h`, "a.password"} {
		require.Equal(t, http.StatusBadRequest, k.get("jobs?payload="+url.QueryEscape(term)).Code, term)
	}
	require.Contains(t, k.page("jobs?payload=to%3Dada"), k.ready.String())

	k.opts.Authorize = func(_ *http.Request, a Action) bool { return a != ViewPayload }
	k.restart()
	for _, path := range k.pages() {
		body := k.get(path).Body.String()
		for _, secret := range []string{"9007199254740993", "paid by ada", "Bearer", "tenant/42"} {
			require.NotContains(t, body, secret, path)
		}
	}
	require.Equal(t, http.StatusForbidden, k.get("jobs?payload=to%3Dada").Code)
	require.Equal(t, http.StatusForbidden, k.get("retry?select=all&payload=to%3Dada").Code)
}

// Rule: the value of a hidden signal stays hidden if a Select took it.
func TestSelectedSignalIsHidden(t *testing.T) {
	k := newKit(t)
	for name, shown := range map[string]string{"signal answer": "hunter2", "signal Password": hidden, "": hidden} {
		result, err := driver.EncodePayload(map[string]string{"case": name, "value": "hunter2"})
		require.NoError(t, err)
		q := &request{Request: httptest.NewRequest("GET", "/", nil), d: k.d}
		e := q.entry(workflow.Entry{Kind: workflow.KindSelect, Name: "next", Result: result}, time.Time{}, time.Time{})
		require.Contains(t, e.Result.Text, shown)
		require.Equal(t, shown == hidden, !strings.Contains(e.Result.Text, "hunter2"))
	}
}

// record keeps log lines.
type record struct {
	mu    sync.Mutex
	lines []string
}

func (r *record) add(level, message string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, level+" "+message+" "+fmt.Sprint(args...))
}

func (r *record) Debug(m string, args ...any) { r.add("debug", m, args) }
func (r *record) Info(m string, args ...any)  { r.add("info", m, args) }
func (r *record) Warn(m string, args ...any)  { r.add("warn", m, args) }
func (r *record) Error(m string, args ...any) { r.add("error", m, args) }

// Rule: each change, and each refused change, is logged with the user who asked for it.
func TestChangesAreLogged(t *testing.T) {
	k := newKit(t)
	log := new(record)
	k.opts.Logger, k.opts.User = log, func(*http.Request) string { return "ada@example.com" }
	k.restart()
	for _, c := range changes {
		log.lines = nil
		k.send("POST", c.path, k.form(c.path))
		require.Len(t, log.lines, 1, c.path)
		for _, part := range []string{"info dashboard change", string(c.action), c.path, "ada@example.com"} {
			require.Contains(t, log.lines[0], part)
		}
	}
	k.opts.ReadOnly = true
	k.restart()
	log.lines = nil
	k.send("POST", "retry", k.form("retry"))
	require.Len(t, log.lines, 1)
	require.Contains(t, log.lines[0], "warn dashboard change refused")
}
