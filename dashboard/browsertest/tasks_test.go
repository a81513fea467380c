package browsertest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// The file of TestTenTasks. Seven tenths of its jobs are dead.
var (
	taskJobs = flag.Int("jobs", 1_000_000, "jobs in the file of TestTenTasks")
	rounds   = flag.Int("rounds", 3, "how often TestTenTasks does each task in the dashboard and by jobctl")
)

// task is something that an operator does. Its name is different each time.
type task struct {
	title   string
	prepare func(w *walk, name string)
	clicks  func(w *walk, name string)   // in the dashboard, from the overview on
	lines   func(name string) [][]string // the commands of jobctl
	want    string                       // a part of what the last command prints
}

var tasks = []task{
	{"retry the 12 dead jobs of one cause", nothing, func(w *walk, name string) {
		w.click("Jobs", "Filter")
		w.write("Error contains", "quota of "+name)
		w.click("Filter", "Retry all")
		w.click("Retry all", "job retry")
		w.confirm("12 jobs retried.")
	}, func(name string) [][]string {
		return [][]string{{"dead", "retry", "--error", "quota of " + name, "-y"}}
	}, "retried 12"},
	{"why does the next job of a key wait?", (*walk).block, func(w *walk, name string) {
		w.click("Jobs", "Filter")
		w.write("Queue", "sync")
		w.clicks++
		w.b.toggle("ready")
		w.click("Filter", w.job[28:])
		w.click(w.job[28:], "tenant/"+name)
	}, func(string) [][]string { return [][]string{{"job", "why", "$JOB"}} }, "key"},
	{"what ran when the app crashed?", (*walk).copyFile, (*walk).openCopy,
		func(string) [][]string { return [][]string{{"--db", "$COPY", "job", "list", "-s", "leased"}} }, "sync"},
	{"which open runs would this build block?", nothing, func(w *walk, _ string) {
		w.click("Runs", "Compare open runs")
		w.click("Compare open runs with the code", "match,")
	}, func(string) [][]string { return [][]string{{"wf", "verify"}} }, "match"},
	{"cancel 100 waiting jobs of a kind", (*walk).enqueueReports, func(w *walk, name string) {
		w.click("Jobs", "Filter")
		w.write("Kind", "report-"+name)
		w.click("Filter", "Cancel all")
		w.click("Cancel all", "job cancel")
		w.confirm("100 jobs cancelled.")
	}, func(name string) [][]string { return [][]string{{"job", "cancel", "-k", "report-" + name, "-y"}} }, "100"},
	{"pause a queue", func(w *walk, name string) { w.enqueue(name) }, func(w *walk, name string) {
		w.click("Queues", "Pause")
		w.click("Pause queue "+name, "No worker fetches its jobs")
		w.click("Pause queue", "Paused.")
	}, func(name string) [][]string { return [][]string{{"queue", "pause", name}} }, ""},
	{"give a run the signal that it waits for", func(w *walk, name string) { w.job = w.runs(name)[0].String() }, func(w *walk, name string) {
		w.click("Runs", "Filter")
		w.write("ID begins with", name)
		w.click("Filter", w.job[28:])
		w.click(w.job[28:], "It waits for the signal")
		w.click("Send a signal", "The run waits for approved.")
		w.write("Value", "true")
		w.click("Send the signal", "The signal was sent.")
	}, func(name string) [][]string {
		return [][]string{{"wf", "list", "--id-prefix", name}, {"wf", "signal", "$JOB", "approved", "true"}}
	}, ""},
	{"when does a schedule fire? fire it now", func(w *walk, name string) { w.schedule(name) }, func(w *walk, name string) {
		w.click("Schedules", "02:30")
		w.click("Trigger "+name, "It fires once now")
		w.click("Trigger the schedule", "It fired ")
	}, func(name string) [][]string { return [][]string{{"sched", "list"}, {"sched", "trigger", name}} }, ""},
	{"read the stack of what fails most", nothing, func(w *walk, _ string) {
		w.click("Failures", "Example")
		w.click(eval[string](w.b, `document.querySelector("tbody a.mono").textContent.trim()`), "Errors")
		w.clicks++
		w.b.toggle("Stack")
		require.Contains(w, w.b.text(), "main.send()")
	}, func(string) [][]string { return [][]string{{"dead", "summary"}, {"job", "show", "$DEAD"}} }, "main.send()"},
	{"check the file and take a backup", nothing, func(w *walk, _ string) {
		w.click("File", "Check")
		w.click("Check the queue", "The queue is sound.")
		w.click("Continue", "Free for reuse")
		w.clicks++
		download(w.b)
	}, func(name string) [][]string {
		return [][]string{{"db", "check"}, {"db", "backup", "$FOLDER/" + name + ".db"}}
	}, ""},
}

func nothing(*walk, string) {}

// walk does tasks in a browser and by jobctl.
type walk struct {
	*app
	b      *tab
	jobctl string // the program
	folder string
	job    string // the job or the run of a task

	running string // a job that holds a key
	copied  string // the file of a stopped app
	clicks  int
	texts   int // that were typed
}

// Rule: the dashboard, with clicks and typed texts alone, and jobctl do the same ten tasks over a million jobs. The test
// prints the clicks, the texts, and the seconds of each, and the commands and their seconds, of the fastest of its rounds,
// which other programs on the machine disturb least. Module bench/dashboards reads these lines.
func TestTenTasks(t *testing.T) {
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("it builds a file of a million jobs; set PAWL_SLOW_TESTS=1")
	}
	w := &walk{app: start(t), folder: t.TempDir()}
	w.jobctl = filepath.Join(w.folder, "jobctl")
	out, err := exec.Command("go", "build", "-o", w.jobctl, "github.com/gopawl/pawl/cmd/jobctl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	w.fill()
	server, err := admin.Serve(w.q, &admin.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	w.b = open(t, launch(t), w.origin)
	w.b.look(1280, "light")
	w.b.visit("queues")
	w.b.toggle("Live") // otherwise a page may move under the mouse
	for _, task := range tasks {
		var pages, commands []float64
		for round := range *rounds {
			pages = append(pages, w.inPages(task, fmt.Sprint("page", round)))
			commands = append(commands, w.inCommands(task, fmt.Sprint("line", round)))
		}
		fmt.Printf("walked\t%s\t%d\t%d\t%.2f\t%d\t%.2f\n", task.title, w.clicks, w.texts, slices.Min(pages), len(task.lines("")), slices.Min(commands))
	}
}

// inPages does a task in the dashboard, and returns the seconds from the first click to the last text.
func (w *walk) inPages(task task, name string) float64 {
	w.Helper()
	task.prepare(w, name)
	w.b.visit("")
	w.clicks, w.texts = 0, 0
	began := time.Now()
	task.clicks(w, name)
	return time.Since(began).Seconds()
}

// inCommands does a task by commands, and returns their seconds.
func (w *walk) inCommands(task task, name string) (seconds float64) {
	w.Helper()
	task.prepare(w, name)
	var out []byte
	known := strings.NewReplacer("$JOB", w.job, "$COPY", w.copied, "$DEAD", w.deadExample(), "$FOLDER", w.folder)
	for _, line := range task.lines(name) {
		for i, word := range line {
			line[i] = known.Replace(word)
		}
		if line[0] != "--db" {
			line = append([]string{"--db", w.q.Path()}, line...)
		}
		began := time.Now()
		var err error
		out, err = exec.Command(w.jobctl, line...).CombinedOutput()
		seconds += time.Since(began).Seconds()
		require.NoError(w, err, "%s\n%s", line, out)
	}
	require.Contains(w, string(out), task.want)
	return seconds
}

// painted waits until the page was painted. Until then a browser may drop a click.
const painted = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// click activates a control, and waits for a text of the next page.
func (w *walk) click(name, want string) {
	w.Helper()
	w.clicks++
	require.True(w, eval[bool](w.b, painted, chromedp.EvalAwaitPromise))
	w.b.follow(name, want)
}

// write types a text into a field.
func (w *walk) write(field, text string) {
	w.Helper()
	w.texts++
	w.b.fill(field, text)
}

// confirm activates the button of the page that asks before a change.
func (w *walk) confirm(want string) {
	w.Helper()
	w.click(eval[string](w.b, `document.querySelector("form.plan button.primary").textContent`), want)
}

// fill stores the jobs and the runs. Each repetition of a task has its own twelve dead jobs.
func (w *walk) fill() {
	w.Helper()
	const portion = 5_000
	open := make([]string, 200)
	for n := range open {
		open[n] = fmt.Sprint("open/", n)
	}
	w.runs(open...)
	deadJobs := *taskJobs / 10 * 7
	for n := 0; n < *taskJobs; n += portion {
		jobs := make([]*pawl.Envelope, portion)
		for i := range jobs {
			jobs[i] = deadMail("email", textOf(n+i, deadJobs/12))
			if e := jobs[i]; n+i >= deadJobs {
				e.Queue, e.State, e.Attempts, e.Failures, e.Death, e.History = fmt.Sprint("queue-", i%17), pawl.Ready, 0, 0, nil, nil
				e.Origin = e.Queue
			}
		}
		require.NoError(w, w.q.Restore(w.Context(), jobs, nil))
	}
}

// textOf returns the error of a dead job.
func textOf(n, every int) string {
	if k := n % every; k < 2**rounds && n/every < 12 {
		return fmt.Sprintf("quota of %s%d is used up by account %d", []string{"page", "line"}[k%2], k/2, n)
	}
	if n%3 == 0 {
		return fmt.Sprintf("421 timeout after %d s", n%60)
	}
	return fmt.Sprintf("dial tcp 10.0.%d.%d:25: connect: connection refused", n%4, n%200)
}

// deadExample returns a job of the largest group of failures.
func (w *walk) deadExample() string {
	page, err := admin.Of(w.q).List(w.Context(), admin.Query{Filter: admin.Filter{Filter: pawl.Filter{State: pawl.Dead}, Error: "dial tcp"}, Limit: 1})
	require.NoError(w, err)
	return page.Jobs[0].Job.ID.String()
}

// block stores a job that waits for a key, which another job holds.
func (w *walk) block(name string) {
	w.enqueue("sync", pawl.Key("tenant/"+name))
	ctx, cancel := context.WithTimeout(w.Context(), deadline)
	defer cancel()
	leases, err := w.q.Fetch(ctx, pawl.Request{Queues: []string{"sync"}, Max: 1})
	require.NoError(w, err)
	require.Len(w, leases, 1)
	w.running = leases[0].ID.String()
	w.job = w.enqueue("sync", pawl.Key("tenant/"+name))
}

func (w *walk) enqueueReports(name string) {
	reports := make([]*pawl.Envelope, 100)
	for i := range reports {
		reports[i] = &pawl.Envelope{Kind: "report-" + name}
	}
	_, err := w.q.Enqueue(w.Context(), reports...)
	require.NoError(w, err)
}

// copyFile makes the file of a stopped app, with the job that ran.
func (w *walk) copyFile(name string) {
	w.block("crash/" + name)
	if w.copied != "" {
		require.NoError(w, os.Remove(w.copied))
	}
	w.copied = filepath.Join(w.folder, "copy-"+name+".db")
	out, err := exec.Command(w.jobctl, "--db", w.q.Path(), "db", "backup", w.copied).CombinedOutput()
	require.NoError(w, err, "%s", out)
}

// openCopy looks at the job that was running, in the dashboard that jobctl serves.
func (w *walk) openCopy(string) {
	ui := exec.Command(w.jobctl, "--db", w.copied, "ui", "--no-browser")
	out, err := ui.StdoutPipe()
	require.NoError(w, err)
	require.NoError(w, ui.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, address, found := strings.Cut(lines.Text(), "http://"); found {
			w.b.load(address, chromedp.Navigate("http://"+address))
			w.click("Workers", w.running[28:])
			break
		}
	}
	require.NoError(w, ui.Process.Signal(syscall.SIGINT))
	_ = ui.Wait()
}
