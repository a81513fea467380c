package browsertest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
)

// deadline limits each wait for the browser. It only has to end a test that hangs.
const deadline = 5 * time.Minute

// programs are the names of a Chromium.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// launch starts a Chromium for the test, or reports that there is none.
func launch(t *testing.T) context.Context {
	t.Helper()
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(path), chromedp.WSURLReadTimeout(deadline))
			ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
			t.Cleanup(cancel)
			ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
			t.Cleanup(cancel)
			require.NoError(t, chromedp.Do(ctx), "start %s", path)
			return ctx
		}
	}
	need.Server(t, "no page of the dashboard is tested in a browser: none of "+strings.Join(programs, ", ")+" is installed; Debian's package chromium has one")
	return nil
}

// tab is a page of the browser for one user.
type tab struct {
	*testing.T
	ctx      context.Context
	keyboard bool // no mouse

	mu       sync.Mutex
	origin   string   // the only origin that it may read from
	problems []string // of the console and of the network
}

// open returns a tab that reads from one origin alone.
func open(t *testing.T, ctx context.Context, origin string) *tab {
	t.Helper()
	b := &tab{T: t, ctx: ctx, origin: origin}
	require.NoError(t, chromedp.Listen(b.ctx, b.listen))
	_, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(b.ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	_, err = chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(t, err)
	return b
}

// listen keeps what must not happen.
func (b *tab) listen(event any) {
	var problem string
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") {
			problem = "fetched " + e.Request.URL
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("console %s", e.Type)
	case *log.EventEntryAdded:
		problem = fmt.Sprintf("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

// sound requires that the tab has had no problem so far.
func (b *tab) sound(what string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b, b.problems, what)
}

// look sets what its user sees.
func (b *tab) look(width int64, theme string) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
	require.NoError(b, err)
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	require.NoError(b, err)
}

// scripts lets the pages run scripts, or not. Scripts that the test evaluates always run.
func (b *tab) scripts(on bool) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	require.NoError(b, err)
}

// load does something that loads a page, waits for the page, and returns its status.
func (b *tab) load(what string, steps ...chromedp.Action[chromedp.Void]) int64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, deadline)
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, steps...)
	require.NoError(b, err, what)
	return answer.Status
}

// visit opens a page of the dashboard.
func (b *tab) visit(path string) {
	b.Helper()
	require.EqualValues(b, 200, b.load(path, chromedp.Navigate(b.origin+"/"+path)), path)
}

// eval evaluates an expression in the page.
func eval[V any](b *tab, expression string, options ...chromedp.EvaluateOption) V {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, deadline)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[V](expression, options...))
	require.NoError(b, err, expression)
	return v
}

// text returns the text that the page shows, with one space between two words.
func (b *tab) text() string {
	b.Helper()
	return eval[string](b, `document.body.innerText.replace(/\s+/g, " ")`)
}

// finder finds the control with a name: its label, or its text. The result is where its middle is, after
// the control was scrolled into view, and how often the Tab key probably has to be pressed to reach it.
const finder = `(name => {
  const text = e => (e.textContent || "").replace(/\s+/g, " ").trim();
  const label = e => e.getAttribute("aria-label") || (e.labels && e.labels.length ? text(e.labels[0]) : text(e));
  const found = [...document.querySelectorAll("a, button, input, select, textarea, summary")].filter(e =>
    e.checkVisibility() && (label(e) === name || e.matches("input, select, textarea") && label(e).startsWith(name)));
  if (found.length === 0) return null;
  document.querySelectorAll("[data-wanted]").forEach(e => e.removeAttribute("data-wanted"));
  found[0].setAttribute("data-wanted", "");
  found[0].scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const box = found[0].getClientRects()[0];
  const stops = [...document.querySelectorAll("a, button, input, select, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility());
  return [box.left + box.width / 2, box.top + box.height / 2, stops.indexOf(found[0]) - stops.indexOf(document.activeElement)];
})(%q)`

// reach moves the mouse or the focus to the control with a name, and returns a function that activates
// it there.
func (b *tab) reach(name, key string) chromedp.Action[chromedp.Void] {
	b.Helper()
	at := eval[[]float64](b, fmt.Sprintf(finder, name))
	require.Len(b, at, 3, "there is no %q among:\n%s", name, b.text())
	if !b.keyboard {
		return chromedp.MouseClickXY(at[0], at[1])
	}
	for range 300 {
		require.NoError(b, chromedp.Do(b.ctx, chromedp.KeyEvent(strings.Repeat(kb.Tab, max(0, int(at[2]))))))
		if at[2] = 1; eval[bool](b, `!!document.activeElement?.matches("[data-wanted]")`) {
			return chromedp.KeyEvent(key)
		}
	}
	require.FailNow(b, "the keyboard does not reach "+name)
	return nil
}

// follow activates a link or a button, waits for the page behind it, and requires a text on it.
func (b *tab) follow(name, want string) {
	b.Helper()
	status := b.load(name, b.reach(name, kb.Enter))
	require.EqualValues(b, 200, status, name)
	require.Contains(b, b.text(), want, "after %q", name)
}

// toggle activates what changes this page alone.
func (b *tab) toggle(name string) {
	b.Helper()
	require.NoError(b, chromedp.Do(b.ctx, b.reach(name, " ")))
}

// fill types into a field.
func (b *tab) fill(label, text string) {
	b.Helper()
	if enter := b.reach(label, ""); !b.keyboard {
		require.NoError(b, chromedp.Do(b.ctx, enter))
	}
	require.NoError(b, chromedp.Do(b.ctx, chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent(text)))
	require.Equal(b, text, eval[string](b, `document.activeElement.value`), label)
}
