package schedule

import (
	"encoding/binary"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// tickHeader is the header of a job with its tick.
const tickHeader = "pawl.tick"

// Tick is the tick for which a schedule enqueued a job. Its times are in UTC, whatever the zone of the schedule.
type Tick struct {
	Schedule string    // name of the schedule
	Nominal  time.Time // when the schedule happens
	Actual   time.Time // when the job was enqueued
	Missed   int       // ticks before it that were missed, up to MaxMissed; see [CatchUp]
	CaughtUp bool      // it fired more than a minute late
	Manual   bool      // fired by [Manager.Trigger] or [Manager.Backfill]
}

// TickOf returns the tick of a job. It is false for a job that no schedule enqueued.
func TickOf(e *pawl.Envelope) (Tick, bool) {
	parts := strings.SplitN(e.Headers[tickHeader], " ", 5)
	if len(parts) != 5 {
		return Tick{}, false
	}
	t := Tick{CaughtUp: strings.Contains(parts[3], "c"), Manual: strings.Contains(parts[3], "m"), Schedule: parts[4]}
	var errs [3]error
	t.Nominal, errs[0] = time.Parse(time.RFC3339Nano, parts[0])
	t.Actual, errs[1] = time.Parse(time.RFC3339Nano, parts[1])
	t.Missed, errs[2] = strconv.Atoi(parts[2])
	if errs != [3]error{} {
		return Tick{}, false
	}
	return t, true
}

// TickOfRun returns what the ID of a run of a workflow says about its tick, for a flow that calls it with the ID of its
// run: Schedule, Nominal, and Manual if [Manager.Trigger] started the run. Then Nominal is the time of the trigger. A run
// that [Manager.Backfill] started has the ID that its tick would have given it. TickOfRun is false for an ID of another
// form.
func TickOfRun(id string) (Tick, bool) {
	name, rest, _ := strings.Cut(id, "/")
	if text, manual := strings.CutPrefix(rest, manualPart); manual {
		trigger, err := pawl.ParseID(text)
		if err != nil || name == "" {
			return Tick{}, false
		}
		at := time.UnixMilli(int64(binary.BigEndian.Uint64(trigger[:8]) >> 16)) // see pawl.NewID
		return Tick{Schedule: name, Nominal: at.UTC(), Manual: true}, true
	}
	nominal, err := time.Parse(time.RFC3339Nano, rest)
	if err != nil || name == "" {
		return Tick{}, false
	}
	return Tick{Schedule: name, Nominal: nominal}, true
}

// withTick returns a copy of a job that has a tick.
func withTick(e *pawl.Envelope, t *Tick) *pawl.Envelope {
	flags := "-"
	if t.CaughtUp {
		flags += "c"
	}
	if t.Manual {
		flags += "m"
	}
	c := *e
	c.Headers = maps.Clone(e.Headers)
	if c.Headers == nil {
		c.Headers = make(map[string]string)
	}
	c.Headers[tickHeader] = strings.Join([]string{stamp(t.Nominal), stamp(t.Actual), strconv.Itoa(t.Missed), flags, t.Schedule}, " ")
	return &c
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// template returns the job of an action.
func (a *action) template() (*pawl.Envelope, error) {
	e, _, err := driver.ParseRecord(a.Job)
	return e, err
}
