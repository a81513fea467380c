package dashboard

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/gopawl/pawl/admin"
)

// filePage is where the queue is.
type filePage struct {
	*admin.Stats
	Used int64 // percent of the file that is not free; -1 if unknown
	Jobs int
}

func file(q *request) error {
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	p := &filePage{Stats: stats, Used: -1}
	if stats.Size > 0 && stats.Free >= 0 {
		p.Used = (stats.Size - stats.Free) * 100 / stats.Size
	}
	for _, one := range stats.Queues {
		p.Jobs += one.Ready + one.Delayed + one.Leased + one.Dead + one.Completed
	}
	return q.show("file", "file", "File", p,
		q.command("db", "info"), q.command("db", "check"), q.command("db", "backup", backupName(stats, q.Now())))
}

// check compares every row with every other. It has no time limit, since a large file takes long, and
// ends when the browser disconnects.
func check(q *request) error {
	began := time.Now()
	err := q.d.admin.Check(q.ctx)
	r := result{Title: "Check", OK: err == nil, Back: "file", Commands: []string{q.command("db", "check")}}
	took := span(time.Since(began))
	switch {
	case err == nil:
		r.Lines = []string{"The queue is sound. The check took " + took + "."}
	case q.Context().Err() != nil || statusOf(err) != http.StatusInternalServerError:
		return err
	default:
		r.Lines = []string{"The check found damage, or could not read the queue:", err.Error()}
	}
	q.d.log.Info("dashboard check", "user", q.d.opts.User(q.Request), "sound", err == nil)
	return q.show("result", "file", r.Title, r, r.Commands...)
}

// backup sends a snapshot of the file. Its last bytes are missing if anything fails, and the browser then
// reports a failed download.
func backup(q *request) error {
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	q.d.log.Info("dashboard backup", "user", q.d.opts.User(q.Request))
	out := &download{q: q, name: backupName(stats, q.Now())}
	err = q.d.admin.Backup(q.ctx, out)
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // remove the deadline for the next request of the connection
	return err
}

// backupName is the name of the downloaded file.
func backupName(stats *admin.Stats, now time.Time) string {
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(stats.Path, `\`, "/")), ".db")
	if stats.Path == "" {
		name = "queue"
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\/;%`, r) {
			return '_'
		}
		return r
	}, name)
	return fmt.Sprintf("%s-%s.db", name, now.UTC().Format("20060102-150405"))
}

// download is the body of a download. The header is sent with the first bytes, so that an earlier error
// is shown as a page. A client that takes nothing for a minute is dropped, since a backup keeps pages of
// the file from being reused.
type download struct {
	q    *request
	name string
}

var _ io.Writer = (*download)(nil)

// Write implements io.Writer.
func (d *download) Write(b []byte) (int, error) {
	if !d.q.began {
		d.q.began = true
		header := d.q.w.Header()
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	}
	_ = http.NewResponseController(d.q.w).SetWriteDeadline(time.Now().Add(time.Minute)) // a server without deadlines has none
	return d.q.w.Write(b)
}
