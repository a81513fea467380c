package transport

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The body of a message: a version, the length of the record, the record, and the history.
const (
	bodyVersion = 1
	maxKept     = 10 // entries of the history

	BodyHeader  = 1 + 4   // bytes in front of the record
	HistoryRoom = 1 << 10 // bytes that an enqueue leaves for the history
)

// entry is an entry of the history.
type entry struct {
	Attempt int
	At      time.Time
	Error   string
	Stack   string
}

// AppendBody encodes a job and the part of its history that fits into limit bytes.
func AppendBody(e *pawl.Envelope, history []pawl.Failure, limit int) []byte {
	b := append(make([]byte, 0, 256+len(e.Payload)), bodyVersion, 0, 0, 0, 0)
	b = driver.AppendRecord(b, e, 0)
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-BodyHeader))
	return append(b, fitHistory(history, limit-len(b))...)
}

// fitHistory encodes the newest failures that fit into room bytes. It shortens the last if it must.
func fitHistory(history []pawl.Failure, room int) []byte {
	var entries []entry
	for _, f := range history[max(0, len(history)-maxKept):] {
		entries = append(entries, entry(f))
	}
	for ; len(entries) > 0; entries = entries[1:] {
		b, err := driver.EncodePayload(entries)
		if err == nil && len(b) <= room {
			return b
		}
		if last := &entries[0]; err == nil && len(entries) == 1 {
			// What a character takes is at most its bytes, so this fits.
			last.Error, last.Stack = strings.ToValidUTF8(last.Error[:min(len(last.Error), max(0, room/2))], ""), ""
			if b, err = driver.EncodePayload(entries); err == nil && len(b) <= room {
				return b
			}
		}
	}
	return nil
}

// ParseBody reads what AppendBody wrote. The payload is a part of b.
func ParseBody(b []byte) (*pawl.Envelope, []pawl.Failure, error) {
	if len(b) < BodyHeader || b[0] != bodyVersion || binary.BigEndian.Uint32(b[1:]) > uint32(len(b)-BodyHeader) {
		return nil, nil, fmt.Errorf("%w: the body of the job is not of this library", pawl.ErrCorrupt)
	}
	end := BodyHeader + int(binary.BigEndian.Uint32(b[1:]))
	e, apart, err := driver.ParseRecord(b[BodyHeader:end:end])
	if err != nil {
		return nil, nil, err
	}
	if apart != 0 {
		return nil, nil, fmt.Errorf("%w: the job has no payload", pawl.ErrCorrupt)
	}
	if end == len(b) {
		return e, nil, nil
	}
	var entries []entry
	if err := driver.DecodeKnown(b[end:], &entries); err != nil {
		return nil, nil, fmt.Errorf("%w: the history of the job: %w", pawl.ErrCorrupt, err)
	}
	var history []pawl.Failure
	for _, entry := range entries {
		history = append(history, pawl.Failure(entry))
	}
	return e, history, nil
}

// Escaping makes names out of any bytes. Its zero value is not usable.
type Escaping struct {
	Mark  byte   // begins the two hex digits of another byte
	Plain string // the bytes that stand for themselves, without Mark
}

const hexDigits = "0123456789ABCDEF"

// Escape returns the name that stands for a text.
func (s Escaping) Escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; strings.IndexByte(s.Plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{s.Mark, hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// Unescape returns the text of a name that Escape made.
func (s Escaping) Unescape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != s.Mark || i+2 >= len(name) {
			b.WriteByte(name[i])
			continue
		}
		b.WriteByte(byte(strings.IndexByte(hexDigits, name[i+1])<<4 | strings.IndexByte(hexDigits, name[i+2])))
		i += 2
	}
	return b.String()
}
