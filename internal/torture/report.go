package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// The table stands between these lines of docs/reliability.md.
const (
	tableBegins = "<!-- the table begins; written by go run ./internal/torture -report -->\n"
	tableEnds   = "<!-- the table ends -->\n"
)

// writeReport puts the table of a run into a document.
func writeReport(path string, results []harness.Result) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(tableBegins))
	_, after, ended := bytes.Cut(rest, []byte(tableEnds))
	if !ok || !ended {
		return fmt.Errorf("%s has no place for the table: the lines %q and %q are missing", path, tableBegins, tableEnds)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(tableBegins)
	fmt.Fprintf(&out, "\n%s, on %s:\n\n", time.Now().Format("2 January 2006"), machine())
	harness.Markdown(&out, results)
	out.WriteByte('\n')
	out.WriteString(tableEnds)
	out.Write(after)
	return os.WriteFile(path, out.Bytes(), 0o644)
}
