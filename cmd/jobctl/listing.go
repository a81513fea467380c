package main

import "fmt"

// listing writes the items of a list as they arrive, in the form of -o. The app's buffer keeps a
// write error until its last flush.
type listing struct {
	app   *app
	table table
	count int

	of   string // jobs or runs: -o json puts the list into an object, beside the cursor
	next string // the cursor after the last item; "" at the end
}

// listing begins a list. wide are the additional columns of -o wide.
func (a *app) listing(columns []column, wide ...column) *listing {
	if a.wide() {
		columns = append(columns, wide...)
	}
	return &listing{app: a, table: a.table(columns...)}
}

// item is one entry of a list.
type item struct {
	id    string   // for -o ids
	json  any      // for programs
	cells []string // for people: the cells of all columns, including the wide ones
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
			between = l.head() + "\n  "
		}
		out.WriteString(between)
		out.Write(text)
		return nil
	}
	out.Write(append(text, '\n'))
	return nil
}

// close ends the list, so that the output is complete even if an error ended it early.
func (l *listing) close() {
	switch {
	case l.app.people():
		l.table.flush()
	case l.app.flags.output == "json" && l.count == 0:
		l.app.stdout.WriteString(l.head() + "]" + l.tail() + "\n")
	case l.app.flags.output == "json":
		l.app.stdout.WriteString("\n]" + l.tail() + "\n")
	}
}

// head and tail return what -o json writes around the items.
func (l *listing) head() string {
	if l.of == "" {
		return "["
	}
	return fmt.Sprintf("{%q: [", l.of)
}

func (l *listing) tail() string {
	switch {
	case l.of == "":
		return ""
	case l.next == "":
		return `, "next": null}`
	}
	next, _ := encode(l.next) // encoding a string cannot fail
	return fmt.Sprintf(`, "next": %s}`, next)
}
