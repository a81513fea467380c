package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// encode writes v as JSON on one line. It writes characters that could harm a terminal as \u
// escapes, which changes nothing for a program: JSON has such characters only in strings.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	text := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	safe := make([]byte, 0, len(text))
	for size := 0; len(text) > 0; text = text[size:] {
		safe, size = appendHarmless(safe, text)
	}
	return safe, nil
}

// appendHarmless appends the first character of JSON, as a \u escape if a terminal would
// interpret it, and returns how many bytes the character had.
func appendHarmless(safe, text []byte) (_ []byte, size int) {
	r, size := utf8.DecodeRune(text)
	switch {
	case plain.Harmless(r):
		safe = append(safe, text[:size]...)
	case r <= 0xffff:
		safe = fmt.Appendf(safe, `\u%04x`, r)
	default:
		high, low := utf16.EncodeRune(r)
		safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
	}
	return safe, size
}

// print writes one object as JSON: indented, or on one line for jsonl.
func (a *app) print(v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	if a.flags.output == "json" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		text = indented.Bytes()
	}
	a.stdout.Write(append(text, '\n'))
	return nil
}

// result prints what a command has done: v for programs, or a text for people.
func (a *app) result(v any, format string, args ...any) error {
	if !a.people() {
		return a.print(v)
	}
	fmt.Fprintf(a.stdout, format, args...)
	return nil
}

// harmlessJSON writes JSON. It replaces characters that a terminal would interpret by \u
// escapes, which changes nothing for a program.
type harmlessJSON struct {
	to   io.Writer
	rest []byte // the beginning of a character
}

func (w *harmlessJSON) Write(b []byte) (int, error) {
	text := append(w.rest, b...)
	safe := make([]byte, 0, len(text)+64)
	for len(text) > 0 && (utf8.FullRune(text) || len(text) >= utf8.UTFMax) {
		size := 1
		if text[0] == '\n' {
			safe = append(safe, '\n')
		} else {
			safe, size = appendHarmless(safe, text)
		}
		text = text[size:]
	}
	w.rest = append([]byte(nil), text...)
	if _, err := w.to.Write(safe); err != nil {
		return 0, err
	}
	return len(b), nil
}
