package handlers

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// output keeps the first and the last half of a program's output, and counts what it drops in
// between. One goroutine writes; others read after it has ended.
type output struct {
	head    []byte // the first bytes, at most half
	tail    []byte // a ring buffer of the last bytes, at most half; starts at next when full
	half    int
	next    int
	written int64
}

func newOutput(limit int) *output { return &output{half: limit / 2} }

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	o.written += int64(n)
	room := min(o.half-len(o.head), len(p))
	o.head = append(o.head, p[:room]...)
	p = p[room:]
	if over := len(p) - o.half; over > 0 { // would be overwritten
		p = p[over:]
	}
	room = min(o.half-len(o.tail), len(p))
	o.tail = append(o.tail, p[:room]...)
	for p = p[room:]; len(p) > 0; {
		copied := copy(o.tail[o.next:], p)
		p = p[copied:]
		o.next = (o.next + copied) % o.half
	}
	return n, nil
}

// cut returns the number of dropped bytes.
func (o *output) cut() int64 { return o.written - int64(len(o.head)+len(o.tail)) }

// last returns the tail in order.
func (o *output) last() []byte { return slices.Concat(o.tail[o.next:], o.tail[:o.next]) }

// bytes returns the kept output, with a line between the halves that reports the dropped bytes.
func (o *output) bytes() []byte {
	var gap []byte
	if cut := o.cut(); cut > 0 {
		gap = fmt.Appendf(nil, "\n[... %d bytes cut ...]\n", cut)
	}
	return slices.Concat(o.head, gap, o.last())
}

// text returns up to n bytes from the end of the kept output as valid UTF-8.
func (o *output) text(n int) string {
	all := o.last()
	if o.cut() == 0 {
		all = slices.Concat(o.head, all)
	}
	all = bytes.TrimRight(all, " \r\n\t")
	if len(all) > n {
		all = all[len(all)-n:]
		for i := 0; i < utf8.UTFMax && len(all) > 0 && !utf8.RuneStart(all[0]); i++ {
			all = all[1:]
		}
	}
	return strings.ToValidUTF8(string(all), "?")
}
