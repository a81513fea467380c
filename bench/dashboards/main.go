package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var (
	jobs   = flag.Int("jobs", 1_000_000, "jobs of pawl and of River; asynq has a tenth")
	rounds = flag.Int("rounds", 3, "how often each task is done")
)

// Tasks of the table that some peer can do. TestTenTasks has them all.
const (
	whatRan  = "what ran when the app crashed?"
	cancel   = "cancel 100 waiting jobs of a kind"
	pause    = "pause a queue"
	schedule = "when does a schedule fire? fire it now"
)

// cells are the table, by column and task.
var cells = map[string]map[string]string{"River UI": {}, "asynqmon": {}}

func must[V any](v V, err error) V {
	if err != nil {
		log.Panic(err)
	}
	return v
}

func main() {
	flag.Parse()
	rows := walkPawl()
	walkPeers()
	fmt.Println("| task | dashboard | jobctl | River UI | asynqmon |\n|---|---|---|---|---|")
	for _, row := range rows {
		for _, peer := range []string{"River UI", "asynqmon"} {
			cell := cells[peer][row[0]]
			if cell == "" {
				cell = "—"
			}
			row = append(row, cell)
		}
		fmt.Printf("| %s |\n", strings.Join(row, " | "))
	}
}

// walkPawl returns the title of each task, and what it took in the dashboard and by jobctl.
func walkPawl() (rows [][]string) {
	test := exec.Command("go", "test", "-run", "^TestTenTasks$", "-v", "-timeout", "30m", ".",
		"-args", "-jobs", fmt.Sprint(*jobs), "-rounds", fmt.Sprint(*rounds))
	test.Dir, test.Stderr = "../../dashboard/browsertest", os.Stderr
	test.Env = append(os.Environ(), "PAWL_SLOW_TESTS=1", "GOWORK=")
	out := must(test.StdoutPipe())
	must(0, test.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var clicks, texts, commands int
		var pages, seconds float64
		fields := strings.Split(lines.Text(), "\t")
		if fields[0] != "walked" {
			fmt.Fprintln(os.Stderr, lines.Text())
			continue
		}
		must(fmt.Sscan(strings.Join(fields[2:], " "), &clicks, &texts, &pages, &commands, &seconds))
		rows = append(rows, []string{fields[1], took(clicks, texts, pages), fmt.Sprintf("%s, %.1f s", count(commands, "command"), seconds)})
	}
	must(0, test.Wait())
	return rows
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// took describes clicks, typed texts, and seconds.
func took(clicks, texts int, seconds float64) string {
	var parts []string
	if clicks > 0 {
		parts = append(parts, count(clicks, "click"))
	}
	if texts > 0 {
		parts = append(parts, count(texts, "text"))
	}
	if parts == nil {
		parts = append(parts, "the first page")
	}
	return fmt.Sprintf("%s, %.1f s", strings.Join(parts, ", "), seconds)
}

// walkPeers does what it can in River UI and asynqmon.
func walkPeers() {
	folder := must(os.MkdirTemp("", "peers-*"))
	defer os.RemoveAll(folder)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(must(exec.LookPath("chromium"))))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	must(0, chromedp.Do(ctx))
	must(chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 900, DeviceScaleFactor: 1}))

	asynq := openAsynq(folder)
	server := httptest.NewServer(asynq.handler)
	b := &tab{ctx: ctx, url: server.URL, cells: cells["asynqmon"]}
	b.do(whatRan, "sync", nothing, func() {
		b.click("a", "sync")
		b.wait("held")
	})
	b.do(pause, "email", asynq.resume, func() {
		b.hover("tr:has(a[href$='/email']) button", "")
		b.click("tr:has(a[href$='/email']) button", "") // the first that the mouse finds there
		b.wait("paused")
	})
	b.do(schedule, "sync", nothing, func() {
		b.click("a", "Schedulers")
		b.wait("30 2 * * *")
	})
	cells["asynqmon"][schedule] += "; it cannot fire it"
	server.Close()
	asynq.stop()

	river := openRiver(folder)
	defer river.stop()
	server = httptest.NewServer(river.handler)
	defer server.Close()
	b.url, b.cells = server.URL, cells["River UI"]
	b.do(whatRan, "held", nothing, func() { b.wait("held") })
	b.do(pause, "held", river.resume, func() {
		b.click("a", "Queues")
		b.click("tr:has(a[href$='/email']) button", "")
		b.until(`document.querySelector("tr:has(a[href$='/email'])").innerText.includes("Paused")`)
	})
	b.do(cancel, "held", river.enqueueReports, func() {
		b.click("a[href='/jobs?state=available']", "")
		b.wait("mail.send") // before that, the page forgets what is typed
		b.write("[placeholder='Add filter']", "kind:report")
		b.click("[data-testid=suggestion-report]", "")
		b.wait("report")
		for rows := 20; rows < 100; rows += 20 {
			b.rows(rows)
			b.click("button", "More")
		}
		b.rows(100)
		b.click("[name=select_all_jobs]", "")
		b.wait("100 selected")
		b.click("button", "Cancel")
		b.wait("Jobs cancelled")
	})
}

func nothing() {}
