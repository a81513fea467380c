package main

import "fmt"

// listing writes the items of a list as they come, in the form that -o names. A
// write error is kept by the app's buffer and shows at its last flush.
type listing struct {
	app   *app
	table table
	count int

	of   string // jobs or runs: the list of -o json is in an object, beside the cursor
	next string // the cursor behind the last item; "" at the end
}

// listing begins a list. Wide are the columns that -o wide has besides.
func (a *app) listing(columns []column, wide ...column) *listing {
	if a.wide() {
		columns = append(columns, wide...)
	}
	return &listing{app: a, table: a.table(columns...)}
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
			between = l.head() + "\n  "
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
		l.app.stdout.WriteString(l.head() + "]" + l.tail() + "\n")
	case l.app.flags.output == "json":
		l.app.stdout.WriteString("\n]" + l.tail() + "\n")
	}
}

// head and tail are what -o json has around the items.
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
	next, _ := encode(l.next) // a text can be encoded
	return fmt.Sprintf(`, "next": %s}`, next)
}
