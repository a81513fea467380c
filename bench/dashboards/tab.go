package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// tab is a page of the browser over a dashboard.
type tab struct {
	ctx    context.Context
	url    string
	cells  map[string]string // what each task took
	clicks int
	texts  int
}

// do does a task several times, each from the first page on, once that page shows a text.
func (b *tab) do(task, first string, prepare, do func()) {
	least := time.Hour
	for range *rounds {
		prepare()
		must(0, chromedp.Do(b.ctx, chromedp.Navigate("about:blank")))
		began := time.Now()
		must(0, chromedp.Do(b.ctx, chromedp.Navigate(b.url)))
		b.wait(first)
		opened := time.Since(began)
		b.clicks, b.texts, began = 0, 0, time.Now()
		do()
		if b.clicks == 0 {
			began = began.Add(-opened) // the first page is the answer
		}
		least = min(least, time.Since(began))
	}
	b.cells[task] = took(b.clicks, b.texts, least.Seconds())
}

// wait waits until the page shows a text.
func (b *tab) wait(text string) {
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// rows waits until the list of River UI has a number of jobs of the kind report, and nothing else.
func (b *tab) rows(n int) {
	b.until(fmt.Sprintf(`(all => all.length === %d && all.every(e => e.innerText === "report"))([...document.querySelectorAll("li h2")])`, n))
}

func (b *tab) until(condition string) {
	for range 6000 {
		if v, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition)); err == nil && v {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	log.Panicf("never: %s in\n%s", condition, must(chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))))
}

// at returns a point of an element that a selector and a text name: its middle, unless something else covers that.
func (b *tab) at(selector, text string) []float64 {
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(e => e.checkVisibility() && (%q === "" || e.innerText.trim() === %q))`, selector, text, text)
	b.until("!!" + find)
	return must(chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(`(e => {
		e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(), y = r.top + r.height / 2;
		return [[r.left + r.width / 2, y], [r.left + r.width / 6, y]].find(p => e.contains(document.elementFromPoint(...p)));
	})(%s)`, find))))
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

// write types a text into a field. The click into the field does not count.
func (b *tab) write(selector, text string) {
	b.click(selector, "")
	b.clicks--
	b.texts++
	must(0, chromedp.Do(b.ctx, chromedp.KeyEvent(text)))
}
