package workflow

import (
	"bytes"

	"github.com/gopawl/pawl"
)

// places compares the rows of places with the runs that have a place or wait
// for one.
func (c *check) places() {
	var last []byte
	c.every(tablePlaces, func(key, content []byte) {
		head, class, rest, err := parsePlaceKey(key)
		if err != nil {
			c.found = append(c.found, err)
			return
		}
		if class == 0 {
			last = bytes.Clone(head)
			return
		}
		if !bytes.Equal(last, head) {
			c.wrong("table %s has row %x without its head", tablePlaces, key)
			last = bytes.Clone(head)
		}
		run := rest
		if class == placeInLine {
			run = content
		}
		if len(run) != len(pawl.ID{}) {
			c.wrong("table %s has row %x with the run %x", tablePlaces, key, run)
			return
		}
		row, err := c.run(pawl.ID(run))
		switch {
		case err != nil: // reported by runs
		case row == nil:
			c.wrong("run %x is not there, and table %s has row %x", run, tablePlaces, key)
		case class == placeTaken && !row.has(head),
			class == placeInLine && !row.waitsAt(key):
			c.wrong("run %s is %s, and table %s has row %x", pawl.ID(run), row.Status, tablePlaces, key)
		}
	})
}

// hasPlaces requires that the rows of a run's places exist.
func (c *check) hasPlaces(id pawl.ID, row *runRow) {
	missing := func(key []byte, what, remedy string) {
		if found, err := c.Get(tablePlaces, key); found == nil && present(err) == nil {
			c.wrong("run %s has a %s, and table %s lacks row %x; %s", id, what, tablePlaces, key, remedy)
		}
	}
	if !row.open() && (row.Places != 0 || row.Line != 0) {
		c.wrong("run %s is %s, and has a place", id, row.Status)
		return
	}
	for _, kind := range placeKinds {
		if row.Places&kind != 0 {
			missing(takenKey(row.placesKey(kind), id), "place", "until the run ends, another one may have it too")
		}
		if row.Line&kind != 0 {
			missing(row.lineKey(kind), "number in line", "resume the run")
		}
	}
}

// waitsAt reports whether the run is open and has a row in a line.
func (row *runRow) waitsAt(key []byte) bool {
	for _, kind := range placeKinds {
		if row.open() && row.Line&kind != 0 && bytes.Equal(key, row.lineKey(kind)) {
			return true
		}
	}
	return false
}
