package browsertest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

//go:embed axe/axe.min.js
var axe string

// violations runs axe-core over the page, and returns what it found.
const violations = `axe.run({ resultTypes: ["violations"], reporter: "v1" }).then(r => JSON.stringify(r.violations.map(v =>
  [v.id, v.impact, ...v.nodes.slice(0, 5).map(n => n.html.slice(0, 300) + " :: " + n.failureSummary)])))`

// addresses are the pages that a page links to, and where its forms go.
const addresses = `JSON.stringify([
  [...document.querySelectorAll("a[href]")].map(a => a.getAttribute("href")),
  [...document.querySelectorAll("form[method=get]")].flatMap(f => [f, ...f.querySelectorAll("[formaction]")]).map(e => e.getAttribute("formaction") || e.getAttribute("action")),
  [...document.querySelectorAll("form[method=post]")].map(f => f.getAttribute("action")),
].map(l => l.map(a => new URL(a, location).pathname.split("/").pop())))`

// pages stores data of every sort, and returns the addresses of all pages that show data.
func (a *app) pages() []string {
	a.Helper()
	run := a.runs("2026/1042")[0].String()
	a.enqueue("sync", pawl.Key("tenant/7"))
	running, err := a.q.Fetch(a.Context(), pawl.Request{Queues: []string{"sync"}, Max: 1})
	require.NoError(a, err)
	require.Len(a, running, 1)
	blocked := a.enqueue("sync", pawl.Key("tenant/7"))
	twins := [2]*pawl.Envelope{deadMail("twins", "twins"), deadMail("twins", "twins")} // their IDs have the same end
	copy(twins[1].ID[8:], twins[0].ID[8:])
	require.NoError(a, a.q.Restore(a.Context(), twins[:], nil))
	h, err := failing.Start(a.Context(), a.engine, "bad", mail{})
	require.NoError(a, err)
	done, ready, delayed := a.enqueue("work"), a.enqueue("slash/queue"), a.enqueue("later", pawl.Delay(time.Hour))
	require.NoError(a, a.worker.Drain(a.Context(), pawl.WaitDrained))
	a.schedule("nightly")
	dead := a.dead("email", "connection refused by host", 2)[0]
	a.dead("email", strings.Repeat("a long error without a blank", 20), 1)
	member := a.members("import/7", 2)[0]
	for range 60 {
		a.enqueue("many")
	}
	a.state(done, pawl.Completed)
	require.NotEmpty(a, a.logs(done))
	edited, err := pawl.ParseID(a.enqueue("edited"))
	require.NoError(a, err)
	require.NoError(a, a.q.Edit(a.Context(), edited, []byte{0xc0}, nil))
	_, err = h.Result(a.Context())
	require.ErrorContains(a, err, "the address is unknown")
	a.heldKey("tenant/9")
	return []string{
		"", "queues", "throughput?last=7d", "jobs", "jobs?queue=many", "jobs?state=dead&newest=1", "jobs?queue=slash%2Fqueue&error=x&reason=poison&since=2h&until=2030-01-01&older=1m&died-since=7d&sort=died",
		"job?id=" + dead, "job?id=" + delayed, "job?id=" + ready, "job?id=" + done, "job?id=" + blocked, "job?id=" + running[0].ID.String(),
		"job?id=" + twins[0].ID.String()[24:], "failures", "failures?queue=email",
		"limits", "keys?queue=sync", "key?queue=sync&name=tenant%2F42", "key?queue=sync&name=tenant%2F7", "keys?queue=sync&blocked=1", "keys?queue=line", "release-key?queue=line&name=tenant%2F9", "job?id=" + member, "jobs?members=import%2F7", "groups", "group?name=import%2F7",
		"close-group?name=import%2F7", "cancel-group?name=import%2F7",
		"runs", "verify", "runs?flow=order&status=waiting", "run?id=" + run, "run?id=" + h.Run().String(), "schedules", "schedule?name=nightly", "workers", "file",
		"retry?id=" + dead, "retry?select=all&state=dead", "delete?id=" + dead, "cancel?id=" + ready, "run-now?id=" + delayed, "edit?id=" + dead, "edit?id=" + delayed, "job?id=" + edited.String(),
		"pause-queue?name=email", "resume-queue?name=email", "signal?id=" + run, "fork?id=" + run, "cancel-run?id=" + run, "terminate-run?id=" + run,
		"pause-run?id=" + run, "resume-run?id=" + run, "pause-schedule?name=nightly", "resume-schedule?name=nightly", "trigger-schedule?name=nightly",
	}
}

// look is what a page looks like.
type look struct {
	width int64
	theme string
}

// looks are all of them.
var looks = []look{{360, "light"}, {1280, "dark"}, {360, "dark"}, {1280, "light"}}

// drawn reports whether each time in a table has one line, and each chart its height.
const drawn = `[...document.querySelectorAll("td time")].every(e => e.offsetHeight < 40) &&
  [...document.querySelectorAll(".chart")].every(e => Math.abs(e.getBoundingClientRect().height - 126) < 2)`

// testPages checks that axe-core finds nothing on any page, that no page is wider than its window, and that every page
// and form that a page leads to, or that the router has, is tested. The number of a page chooses its looks.
func testPages(b *tab, paths []string, looks func(n int) []look) {
	tested := make(map[string]bool)
	for _, path := range paths {
		tested[strings.SplitN(path, "?", 2)[0]] = true
	}
	routes, err := os.ReadFile("../testdata/routes.txt") // a test of package dashboard compares it with the router
	require.NoError(b, err)
	for line := range strings.Lines(string(routes)) {
		switch kind, path, _ := strings.Cut(strings.TrimSpace(line), " /"); kind {
		case "GET":
			require.True(b, tested[path], "no test opens the page %q", path)
		case "POST":
			require.Contains(b, actions, path, "no test makes the change")
		}
	}
	for n, path := range paths {
		b.load(path, chromedp.Navigate(b.origin+"/"+path))
		eval[chromedp.Void](b, axe+";0")
		for _, l := range looks(n) {
			b.look(l.width, l.theme)
			name := fmt.Sprintf("%s at %d px, %s", path, l.width, l.theme)
			require.False(b, eval[bool](b, `document.documentElement.scrollWidth > innerWidth`), "%s is wider than its window", name)
			require.True(b, eval[bool](b, drawn), "%s has a time or a chart without its style", name)
			require.Equal(b, "[]", eval[string](b, violations, chromedp.EvalAwaitPromise), name)
		}
		var found [3][]string
		require.NoError(b, json.Unmarshal([]byte(eval[string](b, addresses)), &found))
		for _, page := range append(found[0], found[1]...) {
			page, err := url.PathUnescape(page)
			require.NoError(b, err)
			require.True(b, tested[page], "%s leads to the page %q, which no test opens", path, page)
		}
		for _, change := range found[2] {
			require.Contains(b, actions, change, "%s has a form for a change that no test makes", path)
		}
	}
}

// Rule: a person reaches and does everything in the dashboard by mouse or by keyboard, with or without scripts, in both
// themes, on a telephone and on a notebook; and all pages keep the rules of axe-core. Nothing is
// fetched from elsewhere, and the console stays empty.
func TestDashboardInBrowser(t *testing.T) {
	ctx := launch(t)
	a := start(t)
	b := open(t, ctx, a.origin)
	b.visit("queues")
	b.toggle("Live") // otherwise a page may change while this test looks at it
	testPages(b, append(a.pages(), "nothing", "job?id=nonsense"), func(int) []look { return looks })
	b.problems = withoutMissingPages(b.problems)
	b.sound("pages")

	// Mouse and keyboard each meet pages with and without scripts, both widths, and both themes.
	for i := range 4 {
		keyboard, scripts, look := i&1 == 1, i&2 == 0, looks[(i^i>>1)&1]
		a.mode = fmt.Sprintf("keyboard=%t width=%d scripts=%t theme=%s", keyboard, look.width, scripts, look.theme)
		b.keyboard = keyboard
		b.scripts(scripts)
		b.look(look.width, look.theme)
		testActions(b, a, scripts)
		b.sound(a.mode)
	}
	for _, action := range actions {
		require.Len(t, a.served[action], 4, action)
	}
}

// Rule: every page of the file of a stopped app, and every form for its changes, keeps the rules of axe-core. The looks
// take turns over the pages.
func TestStoppedFileInBrowser(t *testing.T) {
	ctx := launch(t)
	a := start(t)
	paths := a.pages()
	a.stop()
	b := open(t, ctx, a.origin)
	testPages(b, paths, func(n int) []look { return looks[n%len(looks):][:1] })
	b.sound("pages of a stopped file")
}

// withoutMissingPages leaves out what the browser logs about the two pages that do not exist.
func withoutMissingPages(problems []string) (rest []string) {
	for _, p := range problems {
		if !strings.Contains(p, "/nothing") && !strings.Contains(p, "job?id=nonsense") {
			rest = append(rest, p)
		}
	}
	return rest
}
