package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// tableEnds is the line of a document behind a table.
const tableEnds = "<!-- the table ends -->\n"

// tableBegins is the line of a document before the table of this command.
func (c *Command) tableBegins() string {
	return fmt.Sprintf("<!-- the table begins; written by %s -report -->\n", c.Line)
}

// Check reports mistakes in the families, and in the document that has their table.
func (c *Command) Check(document string) error {
	names := make(map[string]bool)
	for _, f := range c.Families {
		switch {
		case names[f.Name]:
			return fmt.Errorf("two families have the name %q", f.Name)
		case strings.Contains(f.Name, ","):
			return fmt.Errorf("a family of the name %q cannot be chosen", f.Name)
		case f.PR <= 0:
			return fmt.Errorf("family %s has no goal", f.Name)
		case f.Nightly < f.PR:
			return fmt.Errorf("family %s tries fewer in a night", f.Name)
		case f.Share <= 0:
			return fmt.Errorf("family %s has no share of the time", f.Name)
		}
		names[f.Name] = true
		for _, text := range []string{f.Name, f.Goals, f.Method, f.Unit} {
			if text == "" || strings.Contains(text, "|") {
				return fmt.Errorf("family %s: the table cannot show %q", f.Name, text)
			}
		}
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	_, _, err = c.around(document, text)
	return err
}

// around returns what is before and after the table in a document, with the lines around the table.
func (c *Command) around(path string, text []byte) (before, after []byte, err error) {
	begins := []byte(c.tableBegins())
	i := bytes.Index(text, begins)
	j := bytes.Index(text[max(i, 0):], []byte(tableEnds))
	if i < 0 || j < 0 {
		return nil, nil, fmt.Errorf("%s has no place for the table: the lines %q and %q are missing", path, begins, tableEnds)
	}
	return text[:i+len(begins)], text[i+j:], nil
}

// writeReport puts the table of a run into a document.
func (c *Command) writeReport(path string, results []harness.Result) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, after, err := c.around(path, text)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.Write(before)
	fmt.Fprintf(&out, "\n%s, on %s:\n\n", time.Now().Format("2 January 2006"), machine())
	harness.Markdown(&out, results)
	out.WriteByte('\n')
	if c.Summary != nil {
		fmt.Fprintf(&out, "%s\n\n", c.Summary())
	}
	out.Write(after)
	return os.WriteFile(path, out.Bytes(), 0o644)
}
