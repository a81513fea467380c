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
	for size := 0; len(text) > 0; text = text[size:] {
		safe, size = appendHarmless(safe, text)
	}
	return safe, nil
}

// appendHarmless appends the first character of JSON, as a \u escape if a terminal would
// obey it, and says how many bytes it had.
func appendHarmless(safe, text []byte) (_ []byte, size int) {
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

// listing writes the items of a list as they come, in the form that -o names. A
// write error is kept by the app's buffer and shows at its last flush.
type listing struct {
	app   *app
	table table
	count int
}

// listing begins a list. Wide are the columns that -o wide has besides.
func (a *app) listing(columns []column, wide ...column) *listing {
	if a.wide() {
		columns = append(columns, wide...)
	}
	return &listing{app: a, table: table{out: a.stdout, columns: columns, paint: a.colors()}}
}

// item is one thing of a list.
type item struct {
	id    string   // for -o ids
	json  any      // for programs
	cells []string // for people: those of all columns, the wide ones too
}

func (l *listing) add(it item) error {
	l.count++
	out := l.app.stdout
	switch l.app.flags.output {
	case "table", "wide":
		l.table.add(it.cells[:len(l.table.columns)]...)
		return nil
	case "ids":
		out.WriteString(it.id + "\n")
		return nil
	}
	text, err := encode(it.json)
	if err != nil {
		return err
	}
	if l.app.flags.output == "json" {
		between := ",\n  "
		if l.count == 1 {
			between = "[\n  "
		}
		out.WriteString(between)
		out.Write(text)
		return nil
	}
	out.Write(append(text, '\n'))
	return nil
}

// close ends the list, so that what was printed is whole even when an error ended
// it early.
func (l *listing) close() {
	switch {
	case l.app.people():
		l.table.flush()
	case l.app.flags.output == "json" && l.count == 0:
		l.app.stdout.WriteString("[]\n")
	case l.app.flags.output == "json":
		l.app.stdout.WriteString("\n]\n")
	}
}
