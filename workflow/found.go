package workflow

import (
	"bytes"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Table attributes is the index for lists of runs by attribute, by parent, and by key. A key of the table is a name, a
// value, and the run, so the runs of a value are in the order of their starts.

// Names in the index for the parent and the key. No attribute begins with an underscore.
const (
	nameOfParent = "_parent"
	nameOfKey    = "_key"
)

// foundBy returns the prefix of the rows of a value.
func foundBy(name, value string) []byte {
	b := make([]byte, 0, len(name)+len(value)+2+len(pawl.ID{}))
	return append(append(append(append(b, name...), 0), value...), 0)
}

// foundKeys returns the keys of the index rows of a run.
func (row *runRow) foundKeys(run pawl.ID) (keys [][]byte) {
	add := func(name, value string) { keys = append(keys, append(foundBy(name, value), run[:]...)) }
	if !row.Parent.IsZero() {
		add(nameOfParent, row.Parent.String())
	}
	if row.Key != "" {
		add(nameOfKey, row.Key)
	}
	for _, a := range row.Attributes {
		add(a.Name, a.Value)
	}
	return keys
}

// putFound stores the index rows of a run.
func (r rows) putFound(run pawl.ID, row *runRow) error {
	for _, key := range row.foundKeys(run) {
		if err := r.put(tableFound, key, nil); err != nil {
			return err
		}
	}
	return nil
}

// deleteFound removes the index rows of a run.
func (r rows) deleteFound(run pawl.ID, row *runRow) error {
	for _, key := range row.foundKeys(run) {
		if err := r.delete(tableFound, key); err != nil {
			return err
		}
	}
	return nil
}

// probe is how many rows of the index a list counts for each value of its filter.
const probe = 100

// walk returns the walk of a list: over the value with the fewest runs, if the filter has one.
func (f Filter) walk(r rows) (w walk, err error) {
	w = walk{table: tableRuns}
	var values [][]byte
	if !f.Parent.IsZero() {
		values = append(values, foundBy(nameOfParent, f.Parent.String()))
	}
	if f.Key != "" {
		values = append(values, foundBy(nameOfKey, f.Key))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		values = append(values, foundBy(name, f.Attributes[name]))
	}
	fewest := probe + 1
	for _, prefix := range values {
		n, err := r.count(tableFound, driver.Span{Prefix: prefix, Limit: probe})
		if err != nil {
			return w, err
		}
		if n < fewest {
			fewest, w = n, walk{table: tableFound, prefix: prefix}
		}
	}
	return w, nil
}

// foundRows compares the index with the runs.
func (c *check) foundRows(removed map[pawl.ID]bool) {
	c.every(tableFound, func(key, _ []byte) {
		if len(key) < len(pawl.ID{}) {
			c.wrong("key %x of table %s", key, tableFound)
			return
		}
		run := pawl.ID(key[len(key)-len(pawl.ID{}):])
		row, err := c.run(run)
		same := func(k []byte) bool { return bytes.Equal(k, key) }
		switch {
		case err != nil || row == nil && removed[run]: // runs reports the error
		case row == nil:
			c.wrong("table %s has rows of run %s, which is not there", tableFound, run)
		case !slices.ContainsFunc(row.foundKeys(run), same):
			c.wrong("table %s has row %q of run %s, and the run has not that value", tableFound, key[:len(key)-len(run)], run)
		}
	})
}

// isFound requires that a run is in the index.
func (c *check) isFound(run pawl.ID, row *runRow) {
	for _, key := range row.foundKeys(run) {
		if found, err := c.Get(tableFound, key); found == nil && present(err) == nil {
			c.wrong("run %s is not in table %s under %q", run, tableFound, key[:len(key)-len(run)])
		}
	}
}
