package main

import (
	"encoding/json"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// The structs of this file are what programs read. Their field names are a promise,
// and --help lists them: add fields, never rename one.

// statsView is the object of `stats`.
type statsView struct {
	Path      string      `json:"path"`
	Format    int         `json:"format"`
	SizeBytes int64       `json:"size_bytes"`
	FreeBytes *int64      `json:"free_bytes"`
	Queues    []queueView `json:"queues"`
}

type queueView struct {
	Name           string  `json:"name"`
	Paused         bool    `json:"paused"`
	Ready          int     `json:"ready"`
	Delayed        int     `json:"delayed"`
	Parked         int     `json:"parked"`
	Leased         int     `json:"leased"`
	Dead           int     `json:"dead"`
	Completed      int     `json:"completed"`
	OldestReadyAt  *string `json:"oldest_ready_at"`
	OldestReadyAge *string `json:"oldest_ready_age"`
}

// jobView is an object of `job list` and `dead list`.
type jobView struct {
	ID             string            `json:"id"`
	Kind           string            `json:"kind"`
	Queue          string            `json:"queue"`
	Origin         string            `json:"origin"`
	State          string            `json:"state"`
	Reason         *string           `json:"reason"`
	Priority       int               `json:"priority"`
	Sequence       uint64            `json:"sequence"`
	Attempts       int               `json:"attempts"`
	MaxRetries     int               `json:"max_retries"`
	Failures       int               `json:"failures"`
	Crashes        int               `json:"crashes"`
	CreatedAt      string            `json:"created_at"`
	NotBefore      string            `json:"not_before"`
	Deadline       *string           `json:"deadline"`
	LeasedAt       *string           `json:"leased_at"`
	DiedAt         *string           `json:"died_at"`
	CompletedAt    *string           `json:"completed_at"`
	Cancelled      bool              `json:"cancelled"`
	UniqueKey      *string           `json:"unique_key"`
	IdempotencyKey *string           `json:"idempotency_key"`
	Timeout        *string           `json:"timeout"`
	Policy         *string           `json:"policy"`
	Headers        map[string]string `json:"headers"`
	LastError      *string           `json:"last_error"`
}

// detailView is the object of `job show`.
type detailView struct {
	jobView
	Payload        payloadView   `json:"payload"`
	History        []failureView `json:"history"`
	HistoryDropped int           `json:"history_dropped"`
}

type payloadView struct {
	SizeBytes int             `json:"size_bytes"`
	Encoding  string          `json:"encoding"` // messagepack or unknown
	Value     json.RawMessage `json:"value"`
	Hex       *string         `json:"hex"`
}

type failureView struct {
	Attempt int    `json:"attempt"`
	At      string `json:"at"`
	Error   string `json:"error"`
}

// retryView is the object of `dead retry`.
type retryView struct {
	Retried int          `json:"retried"`
	Skipped int          `json:"skipped"`
	Jobs    []resultView `json:"jobs"`
}

type resultView struct {
	ID     string  `json:"id"`
	Result string  `json:"result"` // retried, not_found, not_dead, conflict, damaged or failed
	Error  *string `json:"error"`
}

func viewOfStats(s bolt.Stats, now time.Time) statsView {
	v := statsView{Path: s.Path, Format: s.Format, SizeBytes: s.Size, Queues: []queueView{}}
	if s.Free >= 0 {
		v.FreeBytes = &s.Free
	}
	for _, q := range s.Queues {
		row := queueView{
			Name: q.Name, Paused: q.Paused,
			Ready: q.Ready, Delayed: q.Delayed, Parked: q.Parked, Leased: q.Leased, Dead: q.Dead, Completed: q.Completed,
			OldestReadyAt: stampOrNull(q.Oldest),
		}
		if !q.Oldest.IsZero() {
			age := now.Sub(q.Oldest).String()
			row.OldestReadyAge = &age
		}
		v.Queues = append(v.Queues, row)
	}
	return v
}

func viewOf(e *pawl.Envelope) jobView {
	v := jobView{
		ID: e.ID.String(), Kind: e.Kind, Queue: e.Queue, Origin: e.Origin, State: string(e.State),
		Priority: int(e.Priority), Sequence: e.Seq,
		Attempts: e.Attempts, MaxRetries: e.MaxRetries, Failures: e.Failures, Crashes: e.Crashes,
		CreatedAt: stamp(e.Created), NotBefore: stamp(e.NotBefore), Deadline: stampOrNull(e.Deadline),
		LeasedAt: stampOrNull(e.LeasedSince), CompletedAt: stampOrNull(e.Completed), Cancelled: e.Cancelled,
		UniqueKey: textOrNull(e.UniqueKey), IdempotencyKey: textOrNull(e.IdempotencyKey), Headers: e.Headers,
	}
	if v.Headers == nil {
		v.Headers = map[string]string{}
	}
	if e.Death != nil {
		reason, at := string(e.Death.Reason), stamp(e.Death.At)
		v.Reason, v.DiedAt = &reason, &at
	}
	if e.Timeout != 0 {
		timeout := e.Timeout.String()
		v.Timeout = &timeout
	}
	if e.Policy != nil {
		policy := e.Policy.String()
		v.Policy = &policy
	}
	if n := len(e.History); n > 0 {
		v.LastError = &e.History[n-1].Error
	}
	return v
}

func detailOf(e *pawl.Envelope, payload payloadView) detailView {
	v := detailView{jobView: viewOf(e), Payload: payload, History: []failureView{}, HistoryDropped: dropped(e)}
	for _, f := range e.History {
		v.History = append(v.History, failureView{f.Attempt, stamp(f.At), f.Error})
	}
	return v
}

// dropped is how many failed runs the history no longer has.
func dropped(e *pawl.Envelope) int { return max(e.Failures-len(e.History), 0) }

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}
