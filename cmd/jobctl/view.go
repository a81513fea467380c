package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// Programs read the structs of this file, and admin.Job. Their field names are stable, and
// --help lists them: add fields, never rename one.

// statsView is the object of `stats`.
type statsView struct {
	At        string                `json:"at"`
	Path      string                `json:"path"`
	Process   *processView          `json:"process"`
	Format    int                   `json:"format"`
	SizeBytes int64                 `json:"size_bytes"`
	FreeBytes *int64                `json:"free_bytes"`
	MaxBytes  *int64                `json:"max_bytes"`
	Queues    []queueView           `json:"queues"`
	Pools     []poolView            `json:"pools"`
	Runs      *admin.WorkflowCounts `json:"runs"` // null: there are none
}

type processView struct {
	PID       int         `json:"pid"`
	Name      string      `json:"name"`
	Version   string      `json:"version"`
	StartedAt admin.Stamp `json:"started_at"`
}

// queueView is an object of `queue list`, and one queue of `stats`.
type queueView struct {
	Name           admin.Text `json:"name"`
	Paused         bool       `json:"paused"`
	State          string     `json:"state"`
	Ready          int        `json:"ready"`
	Delayed        int        `json:"delayed"`
	Leased         int        `json:"leased"`
	Dead           int        `json:"dead"`
	Completed      int        `json:"completed"`
	Held           int        `json:"held"`
	MaxWaiting     *int       `json:"max_waiting"`
	RestsUntilAt   *string    `json:"rests_until_at"`
	OldestReadyAt  *string    `json:"oldest_ready_at"`
	OldestReadyAge *string    `json:"oldest_ready_age"`
	Succeeded      *int64     `json:"succeeded"`
	Failed         *int64     `json:"failed"`
}

// poolView is a pool of `stats`.
type poolView struct {
	Name   admin.Text      `json:"name"`
	Leased int             `json:"leased"`
	Queues []poolQueueView `json:"queues"`
}

// poolQueueView is a queue of a pool.
type poolQueueView struct {
	Name    admin.Text `json:"name"`
	Running int        `json:"pool_running"`
}

// changeView is the object of a command that changes jobs or runs. Its first field counts what
// was done: retried, cancelled, deleted and so on.
type changeView struct {
	did     string
	Done    int          `json:"-"`
	Asked   *int         `json:"asked_to_cancel,omitempty"` // of running jobs
	Skipped int          `json:"skipped"`
	DryRun  bool         `json:"dry_run"`
	Jobs    []resultView `json:"jobs,omitzero"`
	Runs    []resultView `json:"runs,omitzero"` // results of a command that changes runs
}

// MarshalJSON implements json.Marshaler.
func (v changeView) MarshalJSON() ([]byte, error) {
	type fields changeView
	rest, err := encode(fields(v))
	return append(fmt.Appendf(nil, `{"%s":%d,`, fieldOf(v.did), v.Done), rest[min(1, len(rest)):]...), err
}

type resultView struct {
	ID     string  `json:"id,omitempty"`
	Run    string  `json:"run,omitempty"` // instead of ID
	Result string  `json:"result"`        // what was done, or not_found, conflict, damaged, failed, not_tried and so on
	Error  *string `json:"error"`
}

func viewOfStats(s *admin.Stats, now time.Time) statsView {
	v := statsView{At: stamp(now), Path: s.Path, Format: s.Format, SizeBytes: s.Size, Queues: []queueView{}, Pools: []poolView{}}
	if s.Free >= 0 {
		v.FreeBytes = &s.Free
	}
	if s.Max > 0 {
		v.MaxBytes = &s.Max
	}
	if p := s.Process; p != nil {
		v.Process = &processView{p.PID, p.Name, p.Version, admin.Stamp{Time: p.Started}}
	}
	for i := range s.Queues {
		v.Queues = append(v.Queues, viewOfQueue(s, &s.Queues[i], now))
	}
	for _, p := range plain.Pools(s.Queues) {
		pool := poolView{Name: admin.Text(p.Name), Leased: p.Leased}
		for _, q := range p.Queues {
			pool.Queues = append(pool.Queues, poolQueueView{admin.Text(q.Name), q.Limits.Pool.Running})
		}
		v.Pools = append(v.Pools, pool)
	}
	return v
}

func viewOfQueue(s *admin.Stats, q *pawl.QueueStats, now time.Time) queueView {
	v := queueView{
		Name: admin.Text(q.Name), Paused: q.Paused, State: fieldOf(strings.ToLower(plain.QueueState(q, s.Process != nil))),
		Ready: q.Ready, Delayed: q.Delayed, Leased: q.Leased, Dead: q.Dead, Completed: q.Completed, Held: q.Held,
	}
	if bound := q.Limits.MaxWaiting; bound > 0 {
		v.MaxWaiting = &bound
	}
	if !q.Rests.IsZero() {
		until := stamp(q.Rests)
		v.RestsUntilAt = &until
	}
	if !q.Oldest.IsZero() {
		at, age := stamp(q.Oldest), now.Sub(q.Oldest).String()
		v.OldestReadyAt, v.OldestReadyAge = &at, &age
	}
	if s.Process != nil {
		done := s.Done[q.Name]
		v.Succeeded, v.Failed = &done.Succeeded, &done.Failed
	}
	return v
}
