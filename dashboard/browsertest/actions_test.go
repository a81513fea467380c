package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// actions are all changes that a form of the dashboard asks for.
var actions = []string{
	"retry", "edit", "delete", "cancel", "run-now", "release-key", "pause-queue", "resume-queue", "close-group", "cancel-group", "pause-schedule", "resume-schedule", "trigger-schedule",
	"signal", "fork", "pause-run", "resume-run", "cancel-run", "terminate-run", "check", "backup", "theme",
}

// testActions does everything that a user can do.
func testActions(b *tab, a *app, scripts bool) {
	name := strings.NewReplacer(" ", "-", "=", "-").Replace(a.mode)
	testJobs(b, a, name)
	testManyJobs(b, a, name)
	testQueuesAndSchedules(b, a, name)
	testKeysAndGroups(b, a, name)
	testRuns(b, a, name)
	testMenu(b)
	testFile(b)
	testTheme(b)
	if scripts {
		testLive(b, a, name)
	}
}

func testJobs(b *tab, a *app, name string) {
	dead := a.dead(name, "refused by "+name, 2)
	b.visit("job?id=" + dead[0])
	b.toggle("Stack")
	require.Contains(b, b.text(), "main.send()")
	b.follow("Retry", "keep their history")
	b.follow("Back", "Its last retry failed.")
	b.follow("Retry", "jobctl --db")
	b.follow("Retry 1 job", "1 job retried.")
	b.follow("Continue", "for attempt 1")
	a.state(dead[0], pawl.Ready)
	b.follow("Cancel", "Waiting jobs become dead.")
	b.follow("Cancel 1 job", "1 job cancelled.")
	a.state(dead[0], pawl.Dead)
	b.visit("job?id=" + dead[1])
	b.follow("Delete", "This cannot be undone.")
	b.follow("Delete 1 job", "1 job deleted.")
	a.state(dead[1], "")
	later := a.enqueue(name, pawl.Delay(time.Hour))
	b.visit("job?id=" + later)
	b.follow("Run now", "They become ready at once.")
	b.follow("Run now 1 job", "1 job made ready.")
	a.state(later, pawl.Ready)
	wrong := a.dead(name, "edited by "+name, 1)[0]
	b.visit("job?id=" + wrong)
	b.follow("Edit and retry", "job edit")
	b.fill("Arguments", `{"To":"edited by `+name+`"}`)
	b.follow("Replace the arguments and retry", "The arguments were replaced.")
	b.follow("Continue", "Earlier arguments")
	a.state(wrong, pawl.Ready)
	b.follow("Edit", "job edit")
	b.fill("Arguments", `{"To":"edited again by `+name+`"}`)
	b.follow("Replace the arguments", "The arguments were replaced.")
}

func testManyJobs(b *tab, a *app, name string) {
	queue, kind := name+"/many", "mail.send"
	dead := a.dead(queue, "many of "+name, 3)
	b.visit("jobs")
	b.fill("Queue", queue)
	b.fill("Kind", kind)
	b.toggle("dead")
	b.follow("Filter", dead[2][28:])
	b.toggle("More conditions")
	b.toggle("Newest first")
	b.follow("Filter", "--newest")
	b.toggle("Mark job " + dead[1])
	b.toggle("Mark job " + dead[2])
	b.follow("Retry", "Retry 2 of 2 jobs")
	b.follow("Retry 2 jobs", "2 jobs retried.")
	a.state(dead[0], pawl.Dead)
	a.state(dead[1], pawl.Ready)
	a.state(dead[2], pawl.Ready)
	b.visit("jobs?queue=" + queue)
	b.follow("Cancel all", "Cancel 2 of 2 jobs")
	b.follow("Cancel 2 jobs", "2 jobs cancelled.")
	b.visit("failures?queue=" + queue)
	b.follow("Retry this group", "Retry 3 of 3 jobs")
	b.follow("Back", "Filter")
	b.visit("jobs?state=dead&queue=" + queue)
	b.follow("Delete all", "Delete 3 of 3 jobs")
	b.follow("Delete 3 jobs", "3 jobs deleted.")
	b.visit("jobs?queue=many")
	b.follow("Next page", "after")
	b.follow("Clear", "Filter")
}

func testQueuesAndSchedules(b *tab, a *app, name string) {
	queue := "queue-" + name
	a.enqueue(queue)
	b.visit("queues")
	b.follow("Pause queue "+queue, "No worker fetches its jobs")
	b.follow("Pause queue", "Paused.")
	b.follow("Continue", "Resume queue "+queue)
	b.follow("Resume queue "+queue, "Its workers fetch jobs again.")
	b.follow("Resume queue", "Resumed.")

	a.schedule(name)
	b.visit("schedules")
	b.follow("Pause "+name, "It fires no ticks")
	b.fill("Note", "until Monday")
	b.follow("Pause the schedule", "The schedule was paused.")
	b.follow("Continue", "until Monday")
	b.follow("Resume", "The ticks of the pause do not fire.")
	b.follow("Resume the schedule", "The schedule was resumed.")
	b.follow("Continue", "at 02:30")
	b.follow("Trigger now", "It fires once now")
	b.follow("Trigger the schedule", "It fired ")
	b.follow("Continue", "by an operator")
}

func testKeysAndGroups(b *tab, a *app, name string) {
	members := a.members("import/"+name, 2)
	b.visit("limits")
	b.follow("sync", "Keys with ready or running jobs")
	b.toggle("Only keys with blocked jobs")
	b.follow("Filter", "--blocked")
	b.visit("keys?queue=sync")
	b.follow("tenant/42", "Limits of the queue")
	dead := a.heldKey("line/" + name)
	b.visit("keys?queue=line")
	b.follow("line/"+name, "The first job is dead and holds the key.")
	b.follow("Release key", "The dead job stays dead")
	b.follow("Release key", "Released.")
	a.state(dead, pawl.Dead)
	b.visit("job?id=" + members[0])
	b.follow("import/"+name, "0 of 2 members have ended")
	b.follow("Members", members[1][28:])
	b.visit("group?name=import/" + name)
	b.follow("Close", "ends once none is pending")
	b.follow("Close group", "The group was closed.")
	b.follow("Continue", "It ends once no member is pending.")
	b.follow("Cancel pending members", "2 members of 2 pending.")
	b.follow("Cancel members of group", "2 members cancelled.")
	b.follow("Continue", "2 of 2 members have ended")
	b.follow("Dead members", members[0][28:])
	a.state(members[0], pawl.Dead)
}

func testRuns(b *tab, a *app, name string) {
	runs := a.runs(name+"/1", name+"/2")
	b.visit("runs")
	b.follow("Compare open runs with the code", "match,")
	b.visit("runs")
	b.fill("ID begins with", name)
	b.follow("Filter", name+"/2")
	b.follow(runs[0].String()[28:], "It waits for the signal")
	b.follow("Pause", "after its current step")
	b.follow("Pause the run", "The run was asked to pause.")
	b.follow("Continue", "paused")
	b.follow("Resume", "The run continues")
	b.follow("Resume the run", "The run was asked to resume.")
	require.NoError(b, a.worker.Drain(a.Context(), pawl.WaitDrained))
	b.follow("Continue", "It waits for the signal")
	b.follow("Send a signal", "The run waits for approved.")
	b.fill("Value", "true")
	b.follow("Send the signal", "The signal was sent.")
	b.follow("Continue", "Unread signals")
	b.follow("Fork from charge", "results of its steps before")
	b.fill("ID of the new run", name+"/3")
	b.follow("Start the new run", "was started.")
	b.follow("Continue", "Forked from")
	b.visit("run?id=" + runs[0].String())
	b.follow("Terminate", "nothing that it did is undone")
	b.fill("Reason", "the customer called")
	b.follow("Terminate the run", "The run was asked to terminate.")
	b.visit("run?id=" + runs[1].String())
	b.follow("Cancel", "the flow undoes what was done")
	b.follow("Cancel the run", "The run was asked to cancel.")
	b.follow("Continue", "It is being ended")
}

// testMenu walks over the menu, and to the content.
func testMenu(b *tab) {
	b.visit("")
	for _, page := range []string{"Queues", "Jobs", "Limits", "Groups", "Failures", "Runs", "Schedules", "Workers", "File", "Overview"} {
		b.follow(page, "In a terminal")
		require.Contains(b, eval[string](b, `document.querySelector("[aria-current=page]").textContent`), page)
	}
	if b.keyboard {
		require.NoError(b, chromedp.Do(b.ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab)))
		require.True(b, eval[bool](b, `document.activeElement.closest("#content") !== null && document.activeElement.id !== "content"`), "the first link does not lead to the content")
	}
}

// testFile checks the file, and downloads a backup.
func testFile(b *tab) {
	b.visit("file")
	b.follow("Check the queue", "The queue is sound.")
	b.follow("Continue", "Free for reuse")
	download(b)
}

// download downloads a backup from the page of the file.
func download(b *tab) {
	b.Helper()
	folder, on := b.TempDir(), true
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID, DownloadPath: folder, EventsEnabled: &on})
	require.NoError(b, err)
	ctx, cancel := context.WithTimeout(b.ctx, deadline)
	defer cancel()
	events := chromedp.BrowserEvents(ctx, browser.DownloadProgress)
	require.NoError(b, chromedp.Do(b.ctx, b.reach("Download a backup", kb.Enter)))
	for e, err := range events {
		require.NoError(b, err)
		require.NotEqual(b, browser.DownloadProgressStateCanceled, e.State)
		if e.State == browser.DownloadProgressStateCompleted {
			file, err := os.Stat(filepath.Join(folder, e.GUID))
			require.NoError(b, err)
			require.NotZero(b, file.Size())
			return
		}
	}
	require.Fail(b, "the backup was not downloaded")
}

// testTheme chooses each theme, and then the theme of the system again.
func testTheme(b *tab) {
	background := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	b.visit("")
	system := background()
	seen := make(map[string]bool)
	for _, theme := range []string{"Light", "Dark"} {
		b.follow(theme, "Overview")
		require.Equal(b, theme, eval[string](b, `document.querySelector("[aria-pressed=true]").textContent`))
		seen[background()] = true
	}
	require.Len(b, seen, 2)
	b.follow("Auto", "Overview")
	require.Equal(b, system, background())
}

// changed waits until the page has a text.
const changed = `new Promise(done => {
  const look = () => document.body.innerText.includes(%[1]q) && done(true);
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
})`

// testLive changes the queue under an open page.
func testLive(b *tab, a *app, name string) {
	on := func() bool { return eval[bool](b, `document.getElementById("live").checked`) }
	b.visit("queues")
	require.False(b, on())
	b.toggle("Live")
	require.True(b, on())
	a.enqueue("live-" + name)
	require.True(b, eval[bool](b, fmt.Sprintf(changed, "live-"+name), chromedp.EvalAwaitPromise))
	b.toggle("Live")
	require.False(b, on())
	b.visit("queues")
	require.False(b, on())
}
