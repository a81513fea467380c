package redis

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// row is the part of a job that the script reads and changes. The record has the rest, as stored at the
// enqueue.
type row struct {
	State     string `msgpack:"st,omitempty"` // one of stateCodes
	Queue     string `msgpack:"q"`
	Kind      string `msgpack:"k"`
	Rank      string `msgpack:"p"` // three digits, the lower the higher the priority
	Seq       string `msgpack:"n,omitempty"`
	NotBefore string `msgpack:"at"`
	Attempts  int    `msgpack:"a,omitempty"`
	Crashes   int    `msgpack:"c,omitempty"`
	Failures  int    `msgpack:"f,omitempty"`
	Cancelled int    `msgpack:"x,omitempty"`
	Backoff   string `msgpack:"b,omitempty"`
	Deadline  string `msgpack:"dl,omitempty"`
	Unique    string `msgpack:"u,omitempty"`
	UniqueIn  string `msgpack:"ui,omitempty"` // codes of the states in which it blocks
	Effect    string `msgpack:"e,omitempty"`  // the idempotency key
	EffectFor string `msgpack:"et,omitempty"` // a duration
	Retain    string `msgpack:"rt,omitempty"` // a duration
	Reason    string `msgpack:"dr,omitempty"`
	Died      string `msgpack:"da,omitempty"`
	Completed string `msgpack:"co,omitempty"`
	Leased    string `msgpack:"ls,omitempty"`
	Token     string `msgpack:"tk,omitempty"`
	Expires   string `msgpack:"ex,omitempty"` // by the clock of leases
	Size      string `msgpack:"z"`            // size of the payload in bytes, eight digits
}

// The places of a row that is stored, which script/1_rows.lua describes.
const (
	rowRank   = 2
	rowTime   = 5
	rowSeq    = 26
	rowSize   = 42
	rowTail   = 50 // start of the tail of a job that is not leased
	rowToken  = 71
	rowExpiry = 79
	rowLeased = 100 // the tail of a leased job
)

// stateCodes are the codes of the states, in the order of the states.
const stateCodes = "rdlxc"

func codeOf(state pawl.State) string {
	for i, s := range pawl.States() {
		if s == state {
			return stateCodes[i : i+1]
		}
	}
	return ""
}

func stateOf(code string) pawl.State {
	if i := strings.Index(stateCodes, code); i >= 0 && code != "" {
		return pawl.States()[i]
	}
	return ""
}

// year1 is the first second that a time has as text, in Unix time.
const year1 = -62135596800

// mostSeconds is the last second that a time has as text, in seconds after year1.
const mostSeconds = 999_999_999_999

// timeText returns a time as text, whose order is that of time: 12 digits of seconds since the year 1,
// and 9 of nanoseconds. "" stands for no time.
func timeText(t time.Time) string {
	seconds, nanos := t.Unix()-year1, t.Nanosecond()
	switch {
	case seconds < 0:
		seconds, nanos = 0, 0
	case seconds > mostSeconds:
		seconds, nanos = mostSeconds, 0
	}
	return digits(seconds, nanos)
}

func digits(seconds int64, nanos int) string {
	var b [21]byte
	for i := 11; i >= 0; i-- {
		b[i], seconds = byte('0'+seconds%10), seconds/10
	}
	for i := 20; i >= 12; i-- {
		b[i], nanos = byte('0'+nanos%10), nanos/10
	}
	return string(b[:])
}

// optional returns the text of a time, "" for zero.
func optional(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return timeText(t)
}

func durationText(d time.Duration) string {
	d = max(d, 0)
	return digits(int64(d/time.Second), int(d%time.Second))
}

// timeOf reads the text of a time. Any other text is zero.
func timeOf(text string) time.Time {
	if len(text) != 21 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(text[:12], 10, 64)
	nanos, err2 := strconv.ParseInt(text[12:], 10, 64)
	if err != nil || err2 != nil {
		return time.Time{}
	}
	return time.Unix(seconds+year1, nanos)
}

// stored is a job as a call sends it.
type stored struct {
	ID     string `msgpack:"id"`
	Record string `msgpack:"b"`
	Row    row    `msgpack:"m"`

	Conflict pawl.Conflict `msgpack:"c"`
	History  []string      `msgpack:"h,omitempty"`
}

// storedOf returns the stored form of an accepted or restored job. Only a restored job has a state.
func storedOf(e *pawl.Envelope) stored {
	m := row{
		Queue: e.Queue, Kind: e.Kind, Rank: rankText(e.Priority), State: codeOf(e.State),
		NotBefore: timeText(e.NotBefore), Attempts: e.Attempts, Crashes: e.Crashes, Failures: e.Failures,
		Backoff: optional(e.BackoffSince), Deadline: optional(e.Deadline), Completed: optional(e.Completed),
		Unique: e.UniqueKey, Effect: e.IdempotencyKey, Size: sizeText(len(e.Payload)),
	}
	if e.UniqueKey != "" {
		for _, state := range pawl.States() {
			if driver.BlockedBy(e, state) {
				m.UniqueIn += codeOf(state)
			}
		}
	}
	if e.IdempotencyKey != "" {
		m.EffectFor = durationText(cmp.Or(e.IdempotencyTTL, pawl.DefaultIdempotencyTTL))
	}
	if e.Retain > 0 {
		m.Retain = durationText(e.Retain)
	}
	if e.Death != nil {
		m.Reason, m.Died = string(e.Death.Reason), timeText(e.Death.At)
	}
	return stored{ID: string(e.ID[:]), Record: string(driver.AppendRecord(nil, e, 0)), Row: m, Conflict: e.OnConflict}
}

func rankText(priority int8) string {
	rank := 127 - int(priority)
	return string([]byte{byte('0' + rank/100), byte('0' + rank/10%10), byte('0' + rank%10)})
}

func sizeText(n int) string { return fmt.Sprintf("%08d", n) }

// isPlain reports whether a job can be stored without a look at other jobs or the clock: it has no given
// ID, no keys, no deadline, and no retention.
func isPlain(e *pawl.Envelope) bool {
	return e.ID.IsZero() && e.UniqueKey == "" && e.IdempotencyKey == "" && e.Deadline.IsZero() && e.Retain <= 0
}

// plainRun is a sequence of similar plain jobs, as the script stores them.
type plainRun struct {
	Jobs  int    `msgpack:"n"`
	State string `msgpack:"st"`
	Head  string `msgpack:"head"` // start of their rows, up to the sequence
	Queue string `msgpack:"q"`
	Key   string `msgpack:"key"`   // key of their index
	Count string `msgpack:"count"` // the field of their count
	Tail  string `msgpack:"tail"`  // end of their rows, beginning with the size

	kind      string
	size      int
	priority  int8
	notBefore time.Time
}

// isLike reports whether a plain job is like those of a run.
func (r *plainRun) isLike(e *pawl.Envelope) bool {
	return r.Queue == e.Queue && r.kind == e.Kind && r.size == len(e.Payload) && r.priority == e.Priority && r.notBefore.Equal(e.NotBefore)
}

// addPlain adds a plain job to the last run, or to a new one. All jobs of the runs are stored at one time.
func addPlain(runs []plainRun, e *pawl.Envelope, now time.Time) []plainRun {
	if n := len(runs) - 1; n >= 0 && runs[n].isLike(e) {
		runs[n].Jobs++
		return runs
	}
	tail, err := msgpack.Marshal(struct {
		Queue string `msgpack:"q"`
		Kind  string `msgpack:"k"`
	}{e.Queue, e.Kind})
	if err != nil {
		panic(err) // encoding texts cannot fail
	}
	r := plainRun{
		Jobs: 1, State: "r", Queue: e.Queue, Key: "r:" + e.Queue + "\x00" + e.Kind + "\x00A", Count: "A" + e.Kind,
		Tail: sizeText(len(e.Payload)) + string(tail),
		kind: e.Kind, size: len(e.Payload), priority: e.Priority, notBefore: e.NotBefore,
	}
	if e.NotBefore.After(now) {
		r.State, r.Key, r.Count = "d", "d", "d"+e.Kind
	}
	r.Head = r.State + "0" + rankText(e.Priority) + timeText(e.NotBefore)
	return append(runs, r)
}

// tokenText returns the token of a lease as the row has it.
func tokenText(token uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, token))
}

// corrupt returns the error of a job that cannot be read.
func corrupt(id string, err error) error {
	return fmt.Errorf("job %s: %w: %w", idOf(id), pawl.ErrCorrupt, err)
}

func idOf(text string) (id pawl.ID) {
	copy(id[:], text)
	return id
}

// parseRow reads a row.
func parseRow(id, text string) (row, error) { return new(rowReader).parse(id, text) }

// rowReader reads rows. It decodes equal tails of consecutive plain rows only once.
type rowReader struct {
	tail string // tail of the last plain row, "" before the first
	of   row    // decoded tail
}

func (r *rowReader) parse(id, text string) (m row, err error) {
	tail := rowTail
	if strings.HasPrefix(text, "l") {
		tail = rowLeased
	}
	if len(text) < tail {
		return m, corrupt(id, fmt.Errorf("its row has %d bytes, less than %d", len(text), tail))
	}
	if text[tail:] == r.tail && r.tail != "" {
		m = r.of
	} else {
		if err = msgpack.Unmarshal([]byte(text[tail:]), &m); err != nil {
			return m, corrupt(id, err)
		}
		if text[1] == '0' {
			r.tail, r.of = text[tail:], m
		}
	}
	m.State = strings.TrimSpace(text[:1])
	m.Rank, m.NotBefore, m.Seq, m.Size = text[rowRank:rowTime], text[rowTime:rowSeq], text[rowSeq:rowSize], text[rowSize:rowTail]
	if tail == rowLeased {
		m.Leased, m.Token, m.Expires = text[rowTail:rowToken], text[rowToken:rowExpiry], text[rowExpiry:rowLeased]
	}
	return m, nil
}

// envelope returns the job of a row and a record.
func (r *rowReader) envelope(id, text, record string) (*pawl.Envelope, row, error) {
	m, err := r.parse(id, text)
	if err != nil {
		return nil, m, err
	}
	e, _, err := driver.ParseRecord([]byte(record))
	if err != nil {
		return nil, m, corrupt(id, err)
	}
	m.fill(e, id)
	return e, m, nil
}

// fill sets the fields of a job that its row has.
func (m *row) fill(e *pawl.Envelope, id string) {
	e.ID, e.Queue, e.Kind, e.State = idOf(id), m.Queue, m.Kind, stateOf(m.State)
	e.Seq, _ = strconv.ParseUint(m.Seq, 10, 64)
	if rank, err := strconv.Atoi(m.Rank); err == nil {
		e.Priority = int8(127 - rank)
	}
	e.NotBefore, e.Attempts, e.Crashes, e.Failures = timeOf(m.NotBefore), m.Attempts, m.Crashes, m.Failures
	e.Cancelled, e.BackoffSince, e.Deadline = m.Cancelled != 0, timeOf(m.Backoff), timeOf(m.Deadline)
	e.Completed, e.LeasedSince, e.Death = timeOf(m.Completed), timeOf(m.Leased), nil
	e.UniqueKey, e.IdempotencyKey = m.Unique, m.Effect
	if m.Reason != "" {
		e.Death = &pawl.Death{Reason: pawl.Reason(m.Reason), At: timeOf(m.Died)}
	}
}

// failureText returns an entry of the history as it is stored.
func failureText(f pawl.Failure) string {
	b, err := msgpack.Marshal([]any{f.Attempt, timeText(f.At), f.Error, f.Stack})
	if err != nil {
		panic(err) // encoding numbers and texts cannot fail
	}
	return string(b)
}

// historyOf reads the entries of a history.
func historyOf(id string, entries []string) (history []pawl.Failure, err error) {
	for _, entry := range entries {
		var f struct {
			_msgpack struct{} `msgpack:",as_array"`
			Attempt  int
			At       string
			Error    string
			Stack    string
		}
		if err := msgpack.Unmarshal([]byte(entry), &f); err != nil {
			return nil, corrupt(id, err)
		}
		history = append(history, pawl.Failure{Attempt: f.Attempt, At: timeOf(f.At), Error: f.Error, Stack: f.Stack})
	}
	return history, nil
}
