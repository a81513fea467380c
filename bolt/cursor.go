package bolt

import "github.com/gopawl/pawl/driver"

// A cursor has the number of a range of rows, and the key of the last row read in that range. That
// row may be gone by now.

func formatCursor(part int, last []byte, scope string) string {
	return driver.FormatCursor(append([]byte{byte(part)}, last...), scope)
}

// parseCursor parses a cursor that formatCursor wrote for the same scope. The reader of the
// rows checks whether the part exists and the key belongs to it.
func parseCursor(text, scope string) (part int, last []byte, err error) {
	place, err := driver.ParseCursor(text, scope)
	switch {
	case err != nil:
		return 0, nil, err
	case len(place) == 0:
		return 0, nil, driver.BadCursor()
	case len(place) == 1:
		return int(place[0]), nil, nil
	}
	return int(place[0]), place[1:], nil
}
