package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// encode writes v as JSON on one line. Characters that could harm a terminal are
// written as \u escapes, which changes nothing for a program: outside of texts JSON
// has none of them.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	text := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	safe := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case harmless(r):
			safe = append(safe, text[:size]...)
		case r <= 0xffff:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		}
		text = text[size:]
	}
	return safe, nil
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

// listing writes the items of a list as they come, in the form that -o names. A
// write error is kept by the app's buffer and shows at its last flush.
type listing struct {
	app   *app
	table table
	count int
}

func (a *app) listing(columns ...column) *listing {
	return &listing{app: a, table: table{out: a.stdout, columns: columns}}
}

// add writes an item: v for programs, cells for people.
func (l *listing) add(v any, cells ...string) error {
	l.count++
	if l.app.flags.output == "table" {
		l.table.add(cells...)
		return nil
	}
	text, err := encode(v)
	if err != nil {
		return err
	}
	if l.app.flags.output == "json" {
		between := ",\n  "
		if l.count == 1 {
			between = "[\n  "
		}
		l.app.stdout.WriteString(between)
		l.app.stdout.Write(text)
		return nil
	}
	l.app.stdout.Write(append(text, '\n'))
	return nil
}

// close ends the list, so that what was printed is whole even when an error ended
// it early.
func (l *listing) close() {
	switch {
	case l.app.flags.output == "table":
		l.table.flush()
	case l.app.flags.output == "json" && l.count == 0:
		l.app.stdout.WriteString("[]\n")
	case l.app.flags.output == "json":
		l.app.stdout.WriteString("\n]\n")
	}
}
