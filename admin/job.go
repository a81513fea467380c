package admin

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/gopawl/pawl"
)

// Job is one job in JSON. Its field names are stable: fields may be added, and none is renamed.
// A field that does not apply to a job is null. [JobOf] converts an envelope to a Job, and
// [Job.Envelope] converts it back; with the payload as base64, nothing is lost.
//
// A string that is not UTF-8 is written as {"base64":"…"}, a time as RFC 3339 in UTC with nine
// digits, and a duration in Go's notation.
type Job struct {
	ID             string   `json:"id"`
	Kind           Text     `json:"kind"`
	Queue          Text     `json:"queue"`
	Origin         Text     `json:"origin"`
	State          string   `json:"state"`
	Reason         *Text    `json:"reason"`
	Priority       int      `json:"priority"`
	Sequence       uint64   `json:"sequence"`
	Attempts       int      `json:"attempts"`
	MaxRetries     int      `json:"max_retries"`
	Failures       int      `json:"failures"`
	Crashes        int      `json:"crashes"`
	CreatedAt      Stamp    `json:"created_at"`
	NotBefore      Stamp    `json:"not_before"`
	Deadline       Stamp    `json:"deadline"`
	LeasedAt       Stamp    `json:"leased_at"`
	DiedAt         Stamp    `json:"died_at"`
	CompletedAt    Stamp    `json:"completed_at"`
	BackoffSince   Stamp    `json:"backoff_since"`
	Cancelled      bool     `json:"cancelled"`
	UniqueKey      *Text    `json:"unique_key"`
	UniqueIn       []string `json:"unique_in"`
	IdempotencyKey *Text    `json:"idempotency_key"`
	IdempotencyTTL Span     `json:"idempotency_ttl"`
	Retain         Span     `json:"retain"`
	Timeout        Span     `json:"timeout"`
	Policy         *string  `json:"policy"`
	PolicyData     *Policy  `json:"policy_data"`
	Key            *Text    `json:"key,omitempty"`
	Cost           int      `json:"cost,omitempty"`
	Weight         int      `json:"weight,omitempty"`
	Group          *Text    `json:"group,omitempty"`
	HoldsKey       bool     `json:"holds_key,omitempty"`
	After          []string `json:"after,omitempty"`
	AfterAny       []string `json:"after_any,omitempty"`
	KeyID          *Text    `json:"key_id"`
	Signature      []byte   `json:"signature"` // base64
	Headers        Headers  `json:"headers"`
	LastError      *Text    `json:"last_error"`

	// Payload is omitted if it was not requested.
	Payload *Payload `json:"payload,omitempty"`

	// Result is what the handler of a completed job returned, in the form of the payload. It is omitted
	// if there is none, and where the payload is.
	Result *Payload `json:"result,omitempty"`

	// Cursor is how far the attempts of the job got, in the form of the payload. It is omitted if
	// there is none, and where the payload is.
	Cursor *Payload `json:"cursor,omitempty"`

	// History contains the kept failed attempts, oldest first, and HistoryDropped counts the
	// failures that are not in it. A list has only the newest.
	History        []Failure `json:"history,omitzero"`
	HistoryDropped int       `json:"history_dropped"`

	// For a job to enqueue; omitted otherwise.
	Delay      Span   `json:"delay,omitzero"`
	OnConflict string `json:"on_conflict,omitempty"` // use_existing, reject or replace
}

// Failure is one failed attempt in the history of a [Job].
type Failure struct {
	Attempt int   `json:"attempt"`
	At      Stamp `json:"at"`
	Error   Text  `json:"error"`
	Stack   Text  `json:"stack,omitempty"` // of a panic
}

// Payload is the arguments of a [Job]. Value is for people and for programs that read JSON. JSON
// has fewer types than MessagePack (see [DecodeJSON]), so a job that is to be stored again has
// Base64 or Hex.
type Payload struct {
	Size     int             `json:"size_bytes"`
	Encoding string          `json:"encoding"` // messagepack, codec for a value of a run that the app has encoded, or unknown
	Value    json.RawMessage `json:"value"`
	Base64   *string         `json:"base64"`
	Hex      *string         `json:"hex"`
}

// PayloadForm selects what is written of a payload.
type PayloadForm uint8

// The forms of a payload in a [Job].
const (
	PayloadNone   PayloadForm = iota // nothing of it
	PayloadSize                      // its size and whether it is MessagePack
	PayloadAuto                      // also its JSON, or hex if it has none
	PayloadJSON                      // also its JSON, or null if it has none
	PayloadHex                       // also its bytes in hex
	PayloadBase64                    // also its bytes in base64
)

// JobOf returns an envelope as JSON.
func JobOf(e *pawl.Envelope, form PayloadForm) Job {
	j := Job{
		ID: e.ID.String(), Kind: Text(e.Kind), Queue: Text(e.Queue), Origin: Text(e.Origin), State: string(e.State),
		Priority: int(e.Priority), Sequence: e.Seq,
		Attempts: e.Attempts, MaxRetries: e.MaxRetries, Failures: e.Failures, Crashes: e.Crashes,
		CreatedAt: Stamp{e.Created}, NotBefore: Stamp{e.NotBefore}, Deadline: Stamp{e.Deadline},
		LeasedAt: Stamp{e.LeasedSince}, CompletedAt: Stamp{e.Completed}, BackoffSince: Stamp{e.BackoffSince},
		Cancelled: e.Cancelled, UniqueKey: textOrNull(e.UniqueKey),
		IdempotencyKey: textOrNull(e.IdempotencyKey), IdempotencyTTL: Span(e.IdempotencyTTL),
		Retain: Span(e.Retain), Timeout: Span(e.Timeout),
		Key: textOrNull(e.Key), Cost: e.Cost, Weight: e.Weight, Group: textOrNull(e.Group), HoldsKey: e.HoldsKey,
		After: each(e.After, pawl.ID.String), AfterAny: each(e.AfterAny, pawl.ID.String), KeyID: textOrNull(e.KeyID), Signature: e.Signature, Headers: Headers(e.Headers),
		History: []Failure{}, HistoryDropped: max(e.Failures-len(e.History), 0),
		Delay: Span(e.Delay),
	}
	for _, state := range e.UniqueIn {
		j.UniqueIn = append(j.UniqueIn, string(state))
	}
	if e.Death != nil {
		reason := Text(e.Death.Reason)
		j.Reason, j.DiedAt = &reason, Stamp{e.Death.At}
	}
	if e.Policy != nil {
		text := e.Policy.String()
		j.Policy, j.PolicyData = &text, policyOf(text)
	}
	for _, f := range e.History {
		j.History = append(j.History, Failure{f.Attempt, Stamp{f.At}, Text(f.Error), Text(f.Stack)})
	}
	if n := len(j.History); n > 0 {
		j.LastError = &j.History[n-1].Error
	}
	if e.OnConflict != pawl.UseExisting {
		j.OnConflict = string(nameOf(conflictNames[:], int(e.OnConflict)))
	}
	j.Payload = payloadOf(e.Payload, form)
	if e.Result != nil {
		j.Result = payloadOf(e.Result, form)
	}
	if e.Cursor != nil {
		j.Cursor = payloadOf(e.Cursor, form)
	}
	return j
}

func payloadOf(payload []byte, form PayloadForm) *Payload {
	if form == PayloadNone {
		return nil
	}
	p := &Payload{Size: len(payload), Encoding: "unknown"}
	limit := 0
	if form == PayloadAuto || form == PayloadJSON {
		limit = math.MaxInt
	}
	value, _, err := DecodeJSON(payload, limit)
	if err == nil {
		p.Encoding = "messagepack"
	}
	switch {
	case err == nil && limit > 0:
		p.Value = value
	case form == PayloadBase64:
		text := base64.StdEncoding.EncodeToString(payload)
		p.Base64 = &text
	case form == PayloadHex, form == PayloadAuto:
		text := hex.EncodeToString(payload)
		p.Hex = &text
	}
	return p
}

// Envelope returns the job as an envelope. It rejects fields that it cannot interpret, with a
// *pawl.InvalidError that names the field, and leaves other checks to the queue. A job without
// an ID gets the zero ID. [EncodeJSON] encodes a payload that exists only as JSON.
func (j *Job) Envelope() (*pawl.Envelope, error) {
	e := &pawl.Envelope{
		Kind: string(j.Kind), Queue: string(j.Queue), Origin: string(j.Origin), State: pawl.State(j.State),
		Priority: int8(j.Priority), Seq: j.Sequence,
		Attempts: j.Attempts, MaxRetries: j.MaxRetries, Failures: j.Failures, Crashes: j.Crashes,
		Created: j.CreatedAt.Time, NotBefore: j.NotBefore.Time, Deadline: j.Deadline.Time,
		LeasedSince: j.LeasedAt.Time, Completed: j.CompletedAt.Time, BackoffSince: j.BackoffSince.Time,
		Cancelled: j.Cancelled, UniqueKey: textOf(j.UniqueKey), IdempotencyKey: textOf(j.IdempotencyKey),
		IdempotencyTTL: j.IdempotencyTTL.Duration(), Retain: j.Retain.Duration(), Timeout: j.Timeout.Duration(),
		Key: textOf(j.Key), Cost: j.Cost, Weight: j.Weight, Group: textOf(j.Group), HoldsKey: j.HoldsKey, KeyID: textOf(j.KeyID), Signature: j.Signature, Headers: j.Headers,
		Delay: j.Delay.Duration(),
	}
	if int(e.Priority) != j.Priority {
		return nil, invalid("priority", "%d is not between %d and %d", j.Priority, math.MinInt8, math.MaxInt8)
	}
	if j.State != "" && !slices.Contains(pawl.States(), e.State) {
		return nil, invalid("state", "%q is none of %v", truncate(j.State), pawl.States())
	}
	for _, state := range j.UniqueIn {
		e.UniqueIn = append(e.UniqueIn, pawl.State(state))
	}
	if j.Reason != nil || !j.DiedAt.IsZero() {
		e.Death = &pawl.Death{Reason: pawl.Reason(textOf(j.Reason)), At: j.DiedAt.Time}
	}
	for _, f := range j.History {
		e.History = append(e.History, pawl.Failure{Attempt: f.Attempt, At: f.At.Time, Error: string(f.Error), Stack: string(f.Stack)})
	}
	var err error
	if j.ID != "" {
		if e.ID, err = pawl.ParseID(j.ID); err != nil {
			return nil, err
		}
	}
	if e.After, err = idsOf(j.After); err != nil {
		return nil, err
	}
	if e.AfterAny, err = idsOf(j.AfterAny); err != nil {
		return nil, err
	}
	if e.OnConflict, err = conflictNamed(j.OnConflict); err != nil {
		return nil, err
	}
	if e.Policy, err = j.strategy(); err != nil {
		return nil, err
	}
	if e.Payload, err = j.Payload.bytes(); err != nil {
		return nil, err
	}
	if e.Result, err = j.Result.bytes(); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if e.Cursor, err = j.Cursor.bytes(); err != nil {
		return nil, fmt.Errorf("cursor: %w", err)
	}
	return e, nil
}

// bytes returns the payload in the most complete form that exists.
func (p *Payload) bytes() (b []byte, err error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Base64 != nil:
		b, err = base64.StdEncoding.DecodeString(*p.Base64)
	case p.Hex != nil:
		b, err = hex.DecodeString(*p.Hex)
	case len(p.Value) > 0 && string(p.Value) != "null":
		b, err = EncodeJSON(p.Value)
		if err != nil {
			return nil, fmt.Errorf("payload: %w", err)
		}
		return b, nil // p.Size may be that of another encoding
	case p.Size != 0:
		return nil, invalid("payload", "its %d bytes were left out; it needs base64, hex or value", p.Size)
	}
	if err != nil {
		return nil, invalid("payload", "%v", err)
	}
	if p.Size != 0 && p.Size != len(b) {
		return nil, invalid("payload", "it has %d bytes, and size_bytes says %d", len(b), p.Size)
	}
	return b, nil
}

var conflictNames = [...]string{pawl.UseExisting: "use_existing", pawl.Reject: "reject", pawl.Replace: "replace"}

func conflictNamed(name string) (pawl.Conflict, error) {
	if name == "" {
		return pawl.UseExisting, nil
	}
	at := slices.Index(conflictNames[:], name)
	if at < 0 {
		return 0, invalid("on_conflict", "%q is none of %v", truncate(name), conflictNames)
	}
	return pawl.Conflict(at), nil
}

func idsOf(texts []string) (ids []pawl.ID, err error) {
	for _, text := range texts {
		id, err := pawl.ParseID(text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
