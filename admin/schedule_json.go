package admin

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

// ScheduleView is a schedule in JSON, with the conventions of [Job]. Its field names are stable:
// fields may be added, and none is renamed. [ScheduleOf] returns one.
type ScheduleView struct {
	Name       Text     `json:"name"`
	State      string   `json:"state"` // active, paused, retired or broken
	Expression Text     `json:"expression"`
	Words      string   `json:"words"`
	Zone       *Text    `json:"zone"` // null: UTC
	Group      *Text    `json:"group"`
	Override   bool     `json:"override"`
	Spread     Span     `json:"spread"`
	CatchUp    int      `json:"catch_up"`
	Window     Span     `json:"window"`
	Overlap    string   `json:"overlap"`
	Buffer     int      `json:"buffer"`
	Kind       *Text    `json:"kind"`
	Flow       *Text    `json:"flow"`
	Queue      Text     `json:"queue"`
	CreatedAt  Stamp    `json:"created_at"`
	NextAt     Stamp    `json:"next_at"`
	DueAt      Stamp    `json:"due_at"`
	PausedAt   Stamp    `json:"paused_at"`
	Note       *Text    `json:"note"`
	RetiredAt  Stamp    `json:"retired_at"`
	Error      *Text    `json:"error"`
	Alive      []string `json:"alive"`
	Buffered   []Stamp  `json:"buffered_at"`
	Ticks      TickView `json:"ticks"`
}

// TickView counts ticks in JSON.
type TickView struct {
	Fired    uint64 `json:"fired"`
	Buffered uint64 `json:"buffered"`
	Skipped  uint64 `json:"skipped"`
	Missed   uint64 `json:"missed"`
	Paused   uint64 `json:"paused"`
	Failed   uint64 `json:"failed"`
}

// ScheduleState returns the state of a schedule in one word.
func ScheduleState(i *schedule.Info) string {
	switch {
	case i.Broken != "":
		return "broken"
	case !i.Retired.IsZero():
		return "retired"
	case !i.Paused.IsZero():
		return "paused"
	}
	return "active"
}

// ScheduleOf returns a schedule as JSON.
func ScheduleOf(i *schedule.Info) ScheduleView {
	v := ScheduleView{
		Name: Text(i.Name), State: ScheduleState(i), Expression: Text(i.Terms.Spec), Words: i.Words, Zone: textOrNull(i.Terms.Zone),
		Group: textOrNull(i.Group), Override: i.Override, Spread: Span(i.Terms.Spread), CatchUp: i.Terms.CatchUp,
		Window: Span(i.Terms.Window), Overlap: string(i.Terms.Overlap), Buffer: i.Terms.Buffer,
		CreatedAt: Stamp{i.Created}, NextAt: Stamp{i.Next}, DueAt: Stamp{i.Due}, PausedAt: Stamp{i.Paused}, Note: textOrNull(i.Note),
		RetiredAt: Stamp{i.Retired}, Error: textOrNull(i.Broken), Alive: each(i.Alive, pawl.ID.String), Buffered: each(i.Buffered, stampOf),
		Ticks: TickView(i.Counts),
	}
	if i.Job != nil {
		v.Kind, v.Queue = textOrNull(i.Job.Kind), Text(i.Job.Queue)
	}
	if i.Run != nil {
		v.Flow, v.Queue = textOrNull(i.Run.Flow), Text(i.Run.Queue)
	}
	if v.Queue == "" && (i.Job != nil || i.Run != nil) {
		v.Queue = pawl.DefaultQueue
	}
	return v
}

// ScheduleDetail is a schedule with its next ticks in JSON.
type ScheduleDetail struct {
	ScheduleView
	Next    []Stamp  `json:"next_ticks_at"`
	Payload *Payload `json:"payload"` // of its job; null for a run
}

// ScheduleDetailOf returns a schedule with its next ticks as JSON.
func ScheduleDetailOf(s *Schedule, form PayloadForm) ScheduleDetail {
	d := ScheduleDetail{ScheduleView: ScheduleOf(&s.Info), Next: each(s.Ticks, stampOf)}
	if s.Job != nil {
		d.Payload = valueOf(s.Job.Payload, form)
	}
	return d
}

// EntryView is an entry of the history of a schedule in JSON, with the conventions of [Job].
type EntryView struct {
	Number   uint64  `json:"number"`
	Decision string  `json:"decision"`
	FirstAt  Stamp   `json:"first_at"` // the first tick
	LastAt   Stamp   `json:"last_at"`
	Ticks    int     `json:"ticks"`
	At       Stamp   `json:"at"`
	Job      *string `json:"job"`
	Why      *Text   `json:"why"`
	Manual   bool    `json:"manual"`
}

// EntryOf returns an entry of the history of a schedule as JSON.
func EntryOf(e *schedule.Entry) EntryView {
	return EntryView{
		Number: e.N, Decision: string(e.Decision), FirstAt: Stamp{e.First}, LastAt: Stamp{e.Last}, Ticks: e.Ticks, At: Stamp{e.At},
		Job: idOrNull(e.Job), Why: textOrNull(e.Why), Manual: e.Manual,
	}
}
