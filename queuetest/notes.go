package queuetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// noted is an attempt that notes something, as a worker runs it.
type noted struct {
	f     *fixture
	notes *driver.Notes
	lease *pawl.Lease
	job   *pawl.Job[string]
}

// noted leases the only ready job for an attempt that notes something.
func (f *fixture) noted(notes *driver.Notes) *noted {
	f.Helper()
	l := f.lease()
	f.pass(time.Millisecond) // no two attempts of a job begin at once
	l.Started = time.Now()
	return &noted{f, notes, l, &pawl.Job[string]{Envelope: l.Envelope, Lease: l}}
}

// log logs a message of the attempt.
func (n *noted) log(message string) {
	ctx := driver.RunContext(n.f.Context(), n.f.q, n.lease, n.notes)
	pawl.Log(ctx).Info(message)
}

// progress notes how far the attempt is.
func (n *noted) progress(done int64) {
	driver.RunContext(n.f.Context(), n.f.q, n.lease, n.notes)
	n.job.Progress(done, 100, fmt.Sprint("row ", done))
}

func (n *noted) end(leavesRecord bool) {
	n.f.Helper()
	n.f.ok(n.notes.End(n.f.Context(), n.lease, leavesRecord), "end the notes of an attempt")
}

// storeNotes stores what was noted.
func (f *fixture) storeNotes(notes *driver.Notes) {
	f.Helper()
	_, err := notes.Store(f.Context())
	f.ok(err, "store notes")
}

// notesOf reads what is stored of a job: the messages of each log, and done of its progress, -1 for none.
func (f *fixture) notesOf(id pawl.ID) (logs []string, done int64) {
	f.Helper()
	done = -1
	for _, l := range f.logsOf(id) {
		var messages []string
		for line := range strings.Lines(l.Head + l.Tail) {
			_, message, _ := strings.Cut(line, "msg=")
			messages = append(messages, strings.TrimSpace(message))
		}
		logs = append(logs, strings.Join(messages, " "))
	}
	all, err := driver.NotesOf(f.q).ReadProgress(f.Context(), id)
	f.ok(err, "read a progress")
	if p, noted := all[id]; noted {
		done = p.Done
	}
	return logs, done
}

func (f *fixture) logsOf(id pawl.ID) []pawl.RunLog {
	f.Helper()
	logs, err := driver.NotesOf(f.q).ReadLogs(f.Context(), id)
	f.ok(err, "read logs")
	return logs
}

func (f *fixture) notesAre(id pawl.ID, done int64, logs ...string) {
	f.Helper()
	got, at := f.notesOf(id)
	equal(f, strings.Join(got, "|"), strings.Join(logs, "|"), "logs")
	equal(f, at, done, "progress")
}

func noteTests() []test {
	return []test{
		newTest("are stored", "The progress and the log of an attempt are stored together, stay over a failed attempt, a release, and a "+
			"crash, and each attempt has a log of its own.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			id := f.add().ID
			run := f.noted(notes)
			run.log("a")
			run.progress(1)
			f.notesAre(id, -1)
			f.storeNotes(notes)
			f.notesAre(id, 1, "a")
			run.log("b")
			run.end(true)
			f.notesAre(id, 1, "a b")
			f.nack(run.lease, 0)
			run = f.noted(notes)
			run.log("c")
			run.progress(2)
			f.storeNotes(notes)
			f.expire(run.lease)
			f.notesAre(id, 2, "a b", "c")
			f.release(f.lease())
			f.notesAre(id, 2, "a b", "c")
		}),
		newTest("change no job", "Notes change nothing else of a job: not its lease, its state, its counts, or its events.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			f.add()
			run := f.noted(notes)
			unchanged := f.unchanged()
			run.log("a")
			run.progress(1)
			f.storeNotes(notes)
			unchanged("after its notes")
			f.ack(run.lease)
		}),
		newTest("of the last runs", "The logs of the last four attempts of a job are kept.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			id := f.add(func(e *pawl.Envelope) { e.MaxRetries = 20 }).ID
			for n := range 6 {
				run := f.noted(notes)
				run.log(fmt.Sprint(n))
				run.end(true)
				f.nack(run.lease, 0)
			}
			f.notesAre(id, -1, "2", "3", "4", "5")
		}),
		newTest("go with the job", "The notes of a job go after it succeeded without a record, and after it was deleted.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			id := f.add().ID
			run := f.noted(notes)
			run.log("a")
			run.progress(1)
			f.storeNotes(notes)
			run.end(false)
			f.storeNotes(notes) // before its ack
			f.notesAre(id, 1, "a")
			f.ack(run.lease)
			f.storeNotes(notes)
			f.notesAre(id, -1)

			deleted := f.add().ID
			run = f.noted(notes)
			run.log("a")
			run.progress(1)
			f.storeNotes(notes)
			f.abandon(run.lease)
			f.remove(deleted)
			f.add()
			other := f.noted(notes)
			other.log("b") // a later store looks for jobs that are gone
			f.storeNotes(notes)
			f.notesAre(deleted, -1)
			f.notesAre(other.lease.ID, -1, "b")
		}),
		newTest("among those of many jobs", "Repeated stores find the notes of every job that is gone, also among those of many jobs that are not.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			var runs []*noted
			for range 70 {
				f.add()
				run := f.noted(notes)
				run.progress(1)
				runs = append(runs, run)
			}
			f.storeNotes(notes)
			slices.SortFunc(runs, func(a, b *noted) int { return bytes.Compare(a.lease.ID[:], b.lease.ID[:]) })
			there, gone := runs[:65], runs[65:]
			for _, run := range gone {
				f.ack(run.lease)
			}
			for n := range int64(3) {
				there[0].progress(n)
				f.storeNotes(notes)
			}
			for _, run := range gone {
				f.notesAre(run.lease.ID, -1)
			}
			f.notesAre(there[0].lease.ID, 2)
			f.notesAre(there[64].lease.ID, 1)
		}),
		newTest("without a write", "An attempt that leaves no record, and ends before its notes were stored, writes none. An attempt that "+
			"noted nothing writes none.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			id := f.add().ID
			run := f.noted(notes)
			run.log("a")
			run.end(false)
			f.storeNotes(notes)
			f.notesAre(id, -1)
		}),
		newTest("of a late run", "An attempt whose job has another holder does not replace the progress of that holder. An attempt whose "+
			"job is gone stores nothing.", func(f *fixture) {
			mine, others := driver.NewNotes(f.q), driver.NewNotes(f.q)
			id := f.add().ID
			late := f.noted(mine)
			f.expire(late.lease)
			run := f.noted(others)
			run.lease.Started = late.lease.Started.Add(time.Second)
			run.progress(7)
			f.storeNotes(others)
			late.progress(3)
			f.storeNotes(mine)
			f.notesAre(id, 7)
			f.ack(run.lease)
			late.progress(4)
			late.log("late")
			f.storeNotes(mine)
			f.notesAre(id, -1)
		}),
		newTest("within bounds", "A log keeps its first and its last lines, and counts the bytes between them.", func(f *fixture) {
			notes := driver.NewNotes(f.q)
			id := f.add().ID
			run := f.noted(notes)
			for n := range 5000 {
				run.log(fmt.Sprintf("line-%04d", n))
			}
			run.log(strings.Repeat("x", 10_000))
			f.storeNotes(notes)
			logs := f.logsOf(id)
			equal(f, len(logs), 1, "logs")
			l := logs[0]
			equal(f, len(l.Head) <= 16<<10 && len(l.Tail) <= 16<<10, true, "the parts are within their bounds")
			equal(f, strings.Contains(l.Head, "line-0000\n") && !strings.Contains(l.Head, "line-4999"), true, "the head has the first lines")
			equal(f, strings.Contains(l.Tail, "line-4999\n") && strings.HasSuffix(l.Tail, "x…\n"), true, "the tail has the last lines")
			equal(f, l.Dropped > 100_000, true, "bytes are dropped")
		}),
	}
}
