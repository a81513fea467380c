package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// change is something that a user may do. GET asks whether to do it, and POST does it.
type change struct {
	path   string
	action Action
	plan   func(*request) (plan, error)
	do     func(*request) (result, error)
}

// changes are all changes. Each has its own path.
var changes = []change{
	jobChange("retry", Retry, admin.Retry),
	jobChange("cancel", Cancel, admin.Cancel),
	jobChange("delete", Delete, admin.Delete),
	jobChange("run-now", RunNow, admin.RunNow),
	keyChange(),
	editChange(),
	queueChange("pause-queue", true),
	queueChange("resume-queue", false),
	runChange("cancel-run", Cancel, admin.Cancel),
	runChange("terminate-run", Terminate, admin.Terminate),
	runChange("pause-run", Run, admin.Pause),
	runChange("resume-run", Run, admin.Resume),
	signalChange(),
	forkChange(),
	groupChange("close-group", Group, "close", "Close group", "The group takes no more members, ends once none is pending, and then enqueues its callbacks.", closeGroup),
	groupChange("cancel-group", Cancel, "cancel", "Cancel members of group", "Members that wait become dead. Members that run are asked to end. It reads all jobs of the queue.", cancelGroup),
	scheduleChange("pause-schedule", admin.Pause),
	scheduleChange("resume-schedule", admin.Resume),
	scheduleChange("trigger-schedule", "trigger"),
}

// plan is what a change is about to do.
type plan struct {
	Title    string
	Lines    []string // sentences
	Fields   []field  // what the user may fill in
	Keep     url.Values
	Path     string
	Button   string // "" if there is nothing to do
	Count    string // the page that counts all jobs, however long it takes; "" if this page did
	Harsh    bool   // it cannot be undone
	Back     string // the page that shows what it changes
	Commands []string
}

// field is an input of a form.
type field struct {
	Name, Label, Value, Help string
	Long                     bool     // several lines
	Rows                     int      // of a long field
	Known                    []string // suggestions
	Required                 bool
}

// result is what a change has done.
type result struct {
	Title    string
	Lines    []string
	OK       bool
	Back     string
	Commands []string
	target   string // for the log
}

// ask shows what the change would do.
func (c change) ask(q *request) error {
	p, err := c.plan(q)
	if err != nil {
		return err
	}
	p.Path = c.path
	return q.show("plan", "", p.Title, p, p.Commands...)
}

// carryOut does the change, and logs who asked for it.
func (c change) carryOut(q *request) error {
	done, err := c.do(q)
	outcome := strings.Join(done.Lines, " ")
	if err != nil {
		outcome = err.Error()
	}
	q.d.log.Info("dashboard change", "action", string(c.action), "path", c.path, "target", done.target,
		"user", q.d.opts.User(q.Request), "outcome", outcome)
	if err != nil {
		return err
	}
	_, _ = q.Stats() // the page says what was done, even if there is no time left to read the state of the queue
	q.write(http.StatusOK, "result", &view{request: q, Title: done.Title, Body: done, commands: done.Commands})
	return nil
}

// keyChange releases a key that a dead job holds or that rests. The request names the queue and the key.
func keyChange() change {
	held := func(q *request) (queue string, k pawl.KeyStats, err error) {
		if queue, err = q.knownQueue(q.Form.Get("queue")); err != nil {
			return queue, k, err
		}
		k, err = q.d.admin.Key(q.ctx, queue, q.Form.Get("name"))
		if err == nil && !k.Held && k.Rests.IsZero() {
			err = &refusal{http.StatusConflict, "No dead job holds key " + clipped(k.Key) + ", and it does not rest.", "Its page shows what its jobs wait for."}
		}
		return queue, k, err
	}
	return change{path: "release-key", action: Retry,
		plan: func(q *request) (plan, error) {
			queue, k, err := held(q)
			lines := []string{"The dead job stays dead, and the other jobs of its key run."}
			if !k.Held {
				lines = []string{"The key rests no more, and its jobs run."}
			}
			return plan{
				Title: "Release key " + k.Key, Lines: lines,
				Keep: url.Values{"queue": {queue}, "name": {k.Key}}, Button: "Release key", Back: link("key", "queue", queue, "name", k.Key),
				Commands: []string{q.command("key", "release", queue, k.Key)},
			}, err
		},
		do: func(q *request) (result, error) {
			queue, k, err := held(q)
			if err != nil {
				return result{}, err
			}
			var errs []error
			if k.Held {
				errs, err = q.d.admin.Do(q.ctx, admin.Action{Verb: admin.ReleaseKey}, k.Head)
			}
			if err == nil && !k.Rests.IsZero() {
				err = q.d.admin.EndRest(q.ctx, queue, k.Key)
			}
			return result{Title: "Key " + k.Key, Lines: []string{"Released."}, OK: true, Back: link("key", "queue", queue, "name", k.Key), target: k.Key},
				errors.Join(append(errs, err)...)
		},
	}
}

// queueChange pauses a queue, or ends its pause and its rest.
func queueChange(path string, pause bool) change {
	verb, effect := "resume", "Its workers fetch jobs again."
	if pause {
		verb, effect = "pause", "No worker fetches its jobs until it is resumed, even after a restart. Running jobs continue, and jobs can be enqueued."
	}
	title := strings.ToUpper(verb[:1]) + verb[1:]
	return change{path: path, action: Queue,
		plan: func(q *request) (plan, error) {
			name, err := q.queueName()
			lines := []string{effect}
			if !pause && !q.QueueStats(name).Rests.IsZero() {
				lines = append(lines, "Its rest ends, although a handler asked for it.")
			}
			return plan{
				Title: title + " queue " + name, Lines: lines, Keep: url.Values{"name": {name}}, Button: title + " queue",
				Back: "queues", Commands: []string{q.command("queue", verb, name)},
			}, err
		},
		do: func(q *request) (result, error) {
			name, err := q.queueName()
			if err != nil {
				return result{}, err
			}
			do := q.d.admin.Resume
			if pause {
				do = q.d.admin.Pause
			}
			return result{Title: "Queue " + name, Lines: []string{title + "d."}, OK: true, Back: "queues", target: name}, do(q.ctx, name)
		},
	}
}

// queueName returns the queue that a request names. A misspelled one would be created.
func (q *request) queueName() (string, error) {
	return q.knownQueue(q.Form.Get("name"))
}
