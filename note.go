package pawl

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/runnotes"
)

// Progress is how far an attempt of a job is; see [Job.Progress].
type Progress struct {
	Done, Total int64 // Total is 0 if it is unknown
	Text        string
	At          time.Time
}

// String returns "412/10000 4% page 412", or only the text if there are no numbers.
func (p Progress) String() string {
	text := fmt.Sprint(p.Done)
	switch {
	case p.Total > 0:
		text = fmt.Sprintf("%d/%d %d%%", p.Done, p.Total, int64(float64(p.Done)/float64(p.Total)*100))
	case p.Done == 0 && p.Text != "":
		return p.Text
	}
	return strings.TrimSpace(text + " " + p.Text)
}

// RunLog is what is kept of the log of one attempt of a job; see [Log].
type RunLog struct {
	Began      time.Time
	Attempt    int
	Head, Tail string // whole lines
	Dropped    int64  // bytes between Head and Tail
}

// Progress notes how far the attempt is, in any unit, for operators. It only takes a lock in memory, so it never waits
// for the queue, and a handler may call it for every row. The worker stores the last progress of all
// its jobs together, at most once a second, so a crash loses at most the last second. A total of 0
// means that it is unknown. Negative numbers count as 0, done is at most the total, and a text is cut
// at 256 bytes.
//
// A queue without [RunNotes], and a job that no worker runs, keep nothing.
func (j *Job[T]) Progress(done, total int64, text string) {
	j.Lease.note(done, total, text, time.Now())
}

// note notes the progress that the attempt has at the given time.
func (l *Lease) note(done, total int64, text string, at time.Time) {
	if run := l.notesOf(); run != nil {
		run.Note(done, total, text, at)
	}
}

// Log returns the logger of the attempt whose handler has this context. The job keeps what the handler logs at level
// Info and above: the first 16 KiB and the last 16 KiB of each attempt, for the last four attempts. A line is cut at
// 4 KiB. The worker stores the logs of all its jobs together, at most once a second, and at the end of each attempt.
// So an attempt that crashes its process loses at most the last second of its log. A handler never waits for this. The
// log is removed with the job: at once after a success without [Retain].
//
// On a queue without [RunNotes], and outside of a handler, the logger discards everything. A handler of many jobs
// gets the logger of the first job.
func Log(ctx context.Context) *slog.Logger {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	run := l.notesOf()
	if run == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(run, nil))
}

// notesOf returns the notes of the attempt of a lease; nil if nobody keeps them.
func (l *Lease) notesOf() *runnotes.Run {
	if l == nil || l.notes == nil {
		return nil
	}
	return l.notes.Of(l.ID, l.Started, l.Attempt())
}
