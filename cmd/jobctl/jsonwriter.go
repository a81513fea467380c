package main

import (
	"math"
	"strconv"
)

// jsonWriter gathers JSON up to about a limit and drops what follows.
type jsonWriter struct {
	out   []byte
	limit int
	whole bool // nothing was dropped; true at the beginning
}

// full reports whether the limit is reached, when there is more to write.
func (w *jsonWriter) full() bool {
	if len(w.out) >= w.limit {
		w.whole = false
	}
	return !w.whole
}

func (w *jsonWriter) raw(text string) {
	if !w.full() {
		w.out = append(w.out, text...)
	}
}

// text writes a JSON text. Bytes that are no UTF-8 become U+FFFD.
func (w *jsonWriter) text(s string) {
	if w.full() {
		return
	}
	if s, w.whole = clip(s, w.limit-len(w.out)); s == "" && !w.whole {
		return
	}
	quoted, _ := encode(s) // a text can always be encoded
	w.out = append(w.out, quoted...)
}

// float writes a number, or a text for what JSON has no number for.
func (w *jsonWriter) float(f float64, bits int) {
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.text(text)
		return
	}
	w.raw(text)
}
