package beanstalkd

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The body of a job: a version, the length of the record, the record, and the history.
const (
	bodyVersion = 1
	bodyHeader  = 1 + 4
	historyRoom = 1 << 10 // bytes that an enqueue leaves for the history
	maxKept     = 10      // entries of the history
)

// entry is an entry of the history.
type entry struct {
	Attempt int
	At      time.Time
	Error   string
	Stack   string
}

// appendBody encodes a job and the part of its history that fits into limit bytes.
func appendBody(e *pawl.Envelope, history []pawl.Failure, limit int) []byte {
	b := append(make([]byte, 0, 256+len(e.Payload)), bodyVersion, 0, 0, 0, 0)
	b = driver.AppendRecord(b, e, 0)
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-bodyHeader))
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
			last.Error, last.Stack = strings.ToValidUTF8(last.Error[:min(len(last.Error), room/2)], ""), ""
			if b, err = driver.EncodePayload(entries); err == nil && len(b) <= room {
				return b
			}
		}
	}
	return nil
}

// parseBody reads what appendBody wrote. The payload is a part of b.
func parseBody(b []byte) (*pawl.Envelope, []pawl.Failure, error) {
	if len(b) < bodyHeader || b[0] != bodyVersion || binary.BigEndian.Uint32(b[1:]) > uint32(len(b)-bodyHeader) {
		return nil, nil, fmt.Errorf("%w: the body of the job is not of this library", pawl.ErrCorrupt)
	}
	end := bodyHeader + int(binary.BigEndian.Uint32(b[1:]))
	e, apart, err := driver.ParseRecord(b[bodyHeader:end:end])
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

const maxTube = 200 // bytes of the name of a tube

// tube returns the name of the tube of a queue and a kind.
func (q *Queue) tube(queue, kind string) string {
	return q.opts.Prefix + "/" + escape(queue) + "/" + escape(kind)
}

// parseTube returns the queue and the kind of a tube; ok is false for one of somebody else.
func (q *Queue) parseTube(tube string) (queue, kind string, ok bool) {
	parts := strings.Split(tube, "/")
	if len(parts) != 3 || parts[0] != q.opts.Prefix {
		return "", "", false
	}
	return unescape(parts[1]), unescape(parts[2]), true
}

// plain are the bytes of a name that stand for themselves in the name of a tube. The server also
// takes / and $, which escape uses, and -, which must not come first.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+;()"

const hexDigits = "0123456789ABCDEF"

func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('$')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+2 >= len(text) {
			b.WriteByte(text[i])
			continue
		}
		b.WriteByte(byte(strings.IndexByte(hexDigits, text[i+1])<<4 | strings.IndexByte(hexDigits, text[i+2])))
		i += 2
	}
	return b.String()
}

// serverPriority is what the server orders by: the smallest comes first.
func serverPriority(p int8) uint32 { return uint32(1<<31 - int64(p)) }

// maxSeconds is the longest delay of the server.
const maxSeconds = math.MaxUint32

// seconds rounds a delay up to what the server takes.
func seconds(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	return uint32(min((d-1)/time.Second+1, maxSeconds))
}
