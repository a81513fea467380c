package workflow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// placeKind is what a place is of. It is a bit of runRow.Places.
type placeKind uint8

const (
	placeOfFlow placeKind = 1
	placeOfKey  placeKind = 2
)

// The limits of a flow, 0 for none.
type openLimits struct{ flow, key int }

func (l openLimits) of(kind placeKind) int {
	if kind == placeOfKey {
		return l.key
	}
	return l.flow
}

// Keys of table places. Those of a flow and a key begin with the key of their head. Neither name has a NUL.
// The run that waits longest has the lowest number.
const (
	placeTaken  = 1 // followed by the run
	placeInLine = 2 // followed by the number; the content is the run
)

// placesKey returns the key of the head of the places of a flow, or of a key of its runs. The content of the
// head is the last number in its line.
func placesKey(flow, key string) []byte {
	b := make([]byte, 0, len(flow)+len(key)+2+1+16)
	return append(append(append(append(b, flow...), 0), key...), 0)
}

func (row *runRow) placesKey(kind placeKind) []byte {
	if kind == placeOfKey {
		return placesKey(row.Flow, row.Key)
	}
	return placesKey(row.Flow, "")
}

func takenKey(head []byte, run pawl.ID) []byte {
	return append(append(slices.Clip(head), placeTaken), run[:]...)
}

func lineKey(head []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(slices.Clip(head), placeInLine), number)
}

// parsePlaceKey returns the parts of a key of table places. The class is 0 for a head.
func parsePlaceKey(key []byte) (head []byte, class byte, rest []byte, err error) {
	flow := bytes.IndexByte(key, 0)
	of := bytes.IndexByte(key[flow+1:], 0)
	n := flow + 1 + of + 1
	switch {
	case flow <= 0 || of < 0:
	case len(key) == n:
		return key, 0, nil, nil
	case key[n] == placeTaken && len(key) == n+1+len(pawl.ID{}), key[n] == placeInLine && len(key) == n+1+8:
		return key[:n], key[n], key[n+1:], nil
	}
	return nil, 0, nil, fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tablePlaces)
}

// restorePlaces stores the places of a run that an export had, whether they are free or not. A run that waited in line
// loses its number: its job is stored as a ready one, so it waits in line again.
func (r rows) restorePlaces(run pawl.ID, row *runRow) error {
	if !row.open() {
		return nil
	}
	for _, kind := range [...]placeKind{placeOfFlow, placeOfKey} {
		if row.Places&kind == 0 {
			continue
		}
		head := row.placesKey(kind)
		if known, err := r.get(tablePlaces, head); err != nil {
			return err
		} else if known == nil {
			if err := r.put(tablePlaces, head, binary.AppendUvarint(nil, 0)); err != nil {
				return err
			}
		}
		if err := r.put(tablePlaces, takenKey(head, run), nil); err != nil {
			return err
		}
	}
	if row.Line == 0 {
		return nil
	}
	row.Line, row.Number = 0, 0
	return r.putRun(run, row)
}

// waitsForPlace describes the places for which a run waits: "key tenant/42" or "flow order". It returns "" if
// it waits for none.
func (row *runRow) waitsForPlace() string {
	switch row.Line {
	case placeOfKey:
		return "key " + row.Key
	case placeOfFlow:
		return "flow " + row.Flow
	}
	return ""
}

// holders returns some of the runs that have a place for which the run waits.
func (r rows) holders(row *runRow) (runs []pawl.ID, err error) {
	prefix := append(row.placesKey(row.Line), placeTaken)
	err = present(r.Scan(tablePlaces, driver.Span{Prefix: prefix, Limit: pawl.MaxHolders}, func(key, _ []byte) bool {
		if len(key) == len(prefix)+len(pawl.ID{}) {
			runs = append(runs, pawl.ID(key[len(prefix):]))
		}
		return true
	}))
	return runs, err
}

// validKey checks the key of a run.
func validKey(key string) error {
	reason := ""
	switch {
	case key == "":
		reason = "is empty; leave the option out for a run without one"
	case len(key) > pawl.MaxKeyBytes:
		reason = fmt.Sprintf("has %d bytes, at most %d are allowed", len(key), pawl.MaxKeyBytes)
	case strings.ContainsRune(key, 0):
		reason = "has a NUL"
	default:
		return nil
	}
	return &pawl.InvalidError{Field: "key", Reason: reason}
}
