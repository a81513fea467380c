package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var (
	jobs   = flag.Int("jobs", 1_000_000, "jobs of River; asynq has a tenth")
	rounds = flag.Int("rounds", 3, "how often each task is done")
)

// tab is a page of the browser.
type tab struct {
	ctx    context.Context
	clicks int
}

func must[V any](v V, err error) V {
	if err != nil {
		log.Panic(err)
	}
	return v
}

func main() {
	flag.Parse()
	folder := must(os.MkdirTemp("", "peers-*"))
	defer os.RemoveAll(folder)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(must(exec.LookPath("chromium"))))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	must(0, chromedp.Do(ctx))
	b := &tab{ctx: ctx}
	must(chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 900, DeviceScaleFactor: 1}))

	handler, resume, stop := openAsynq(folder)
	defer stop()
	server := httptest.NewServer(handler)
	b.time("asynqmon: what runs?", server.URL, "sync", nil, func() {
		b.click("a", "sync")
		b.wait("held")
	})
	b.time("asynqmon: pause a queue", server.URL, "email", resume, func() {
		b.hover("tr:has(a[href$='/email']) button", "")
		b.click("tr:has(a[href$='/email']) button", "") // the first that the mouse finds there
		b.wait("paused")
	})
	b.time("asynqmon: when does a schedule fire?", server.URL, "sync", nil, func() {
		b.click("a", "Schedulers")
		b.wait("30 2 * * *")
	})
	server.Close()

	handler, stopRiver := openRiver(folder)
	defer stopRiver()
	server = httptest.NewServer(handler)
	b.time("River UI: what runs?", server.URL, "held", nil, func() { b.wait("held") })
	server.Close()
}

// time does a task several times, each from the first page on, once that page shows a text.
func (b *tab) time(what, url, first string, prepare func(), do func()) {
	least := time.Hour
	for range *rounds {
		if prepare != nil {
			prepare()
		}
		must(0, chromedp.Do(b.ctx, chromedp.Navigate("about:blank")))
		began := time.Now()
		must(0, chromedp.Do(b.ctx, chromedp.Navigate(url)))
		b.wait(first)
		opened := time.Since(began)
		b.clicks, began = 0, time.Now()
		do()
		if b.clicks == 0 {
			began = began.Add(-opened) // the first page is the answer
		}
		least = min(least, time.Since(began))
	}
	fmt.Printf("%-40s %d clicks, %5.2f s\n", what, b.clicks, least.Seconds())
}

// wait waits until the page shows a text.
func (b *tab) wait(text string) {
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

func (b *tab) until(condition string) {
	for range 6000 {
		if v, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition)); err == nil && v {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	log.Panicf("never: %s in\n%s\n%s", condition, must(chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))), must(chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.querySelector("main")?.innerHTML.slice(0, 6000) || ""`))))
}

// at returns the middle of an element that a selector and a text name.
func (b *tab) at(selector, text string) []float64 {
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(e => e.checkVisibility() && (%q === "" || e.innerText.trim() === %q || e.matches("tr") && e.innerText.includes(%q)))`, selector, text, text, text)
	b.until("!!" + find)
	return must(chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(`(e => { e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2] })(%s)`, find))))
}

// painted waits until the page was painted. Until then a browser may drop a click.
const painted = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// hover moves the mouse to an element, which is no click.
func (b *tab) hover(selector, text string) {
	p := b.at(selector, text)
	must(0, chromedp.Do(b.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, p[0], p[1])))
}

func (b *tab) click(selector, text string) {
	b.clicks++
	_, _ = chromedp.Run(b.ctx, chromedp.Evaluate[bool](painted, chromedp.EvalAwaitPromise))
	p := b.at(selector, text)
	must(0, chromedp.Do(b.ctx, chromedp.MouseClickXY(p[0], p[1])))
}
