package driver

import (
	"encoding/hex"
	"strings"

	"github.com/gopawl/pawl"
)

// MaxSearched is the most IDs that one call of a queue's FindIDs compares with the end of an ID.
const MaxSearched = 10_000

// Search collects the IDs of jobs that begin or end with a part of an ID. It first takes those that begin
// with it, from an index, and then compares all IDs in their order, in portions.
type Search struct {
	IDs    []pawl.ID
	After  pawl.ID // the last ID that was compared
	digits string
	first  bool
	most   int
	left   int // of this portion
}

// NewSearch begins a search for at most most IDs, or continues one after a cursor. It returns a
// [*pawl.InvalidError] for a part that is not a part of an ID, and for a cursor of another search.
func NewSearch(part, after string, most int) (*Search, error) {
	digits, err := PartOfID(part)
	if err != nil {
		return nil, err
	}
	s := &Search{digits: digits, first: after == "", most: most, left: MaxSearched}
	if !s.first {
		place, err := ParseCursor(after, s.scope())
		if err != nil {
			return nil, err
		}
		if copy(s.After[:], place) != len(s.After) {
			return nil, BadCursor()
		}
	}
	return s, nil
}

func (s *Search) scope() string { return "ids " + s.digits }

// Range returns the least and the greatest ID that begin with the part, and how many of them the search
// takes: none when it continues, since it already has them.
func (s *Search) Range() (least, greatest pawl.ID, most int) {
	rest := 2*len(least) - len(s.digits)
	if !s.first || rest < 0 {
		return least, greatest, 0
	}
	for id, fill := range map[*pawl.ID]string{&least: "0", &greatest: "f"} {
		_, _ = hex.Decode(id[:], []byte(s.digits+strings.Repeat(fill, rest))) // the digits were checked
	}
	return least, greatest, s.most
}

// Add compares the next ID in order, and reports whether the search compares more in this call.
func (s *Search) Add(id pawl.ID) bool {
	var text [2 * len(id)]byte
	hex.Encode(text[:], id[:])
	if t := string(text[:]); strings.HasSuffix(t, s.digits) && !strings.HasPrefix(t, s.digits) {
		s.IDs = append(s.IDs, id)
	}
	s.After = id
	s.left--
	return s.Left() > 0
}

// Left returns how many IDs this call still compares.
func (s *Search) Left() int {
	if len(s.IDs) >= s.most || len(s.digits) >= 2*len(s.After) {
		return 0
	}
	return s.left
}

// Next returns the cursor of the next call, or "" after a search that has seen all IDs or has found as many
// as it may. A portion with IDs left over has reached the last ID.
func (s *Search) Next() string {
	if s.left > 0 || len(s.IDs) >= s.most {
		return ""
	}
	return FormatCursor(s.After[:], s.scope())
}
